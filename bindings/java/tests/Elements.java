// SPDX-License-Identifier: Apache-2.0

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import org.qtensor.DType;
import org.qtensor.Tensor;

/**
 * Elements of every type as the cases write them: floats of 32 and 64 bits as reals, narrower ones as bit patterns,
 * packed integers one by one.
 */
final class Elements {
  private static final Map<DType, Integer> BITS = Map.ofEntries(Map.entry(DType.UINT2, 2), Map.entry(DType.INT2, 2),
      Map.entry(DType.UINT4, 4), Map.entry(DType.INT4, 4), Map.entry(DType.UINT8, 8), Map.entry(DType.INT8, 8),
      Map.entry(DType.BOOL, 8), Map.entry(DType.FLOAT8_E4M3FN, 8), Map.entry(DType.FLOAT8_E5M2, 8),
      Map.entry(DType.FLOAT8_E4M3FNUZ, 8), Map.entry(DType.FLOAT8_E5M2FNUZ, 8), Map.entry(DType.FLOAT8_E8M0, 8),
      Map.entry(DType.FLOAT4_E2M1, 4),
      Map.entry(DType.UINT16, 16), Map.entry(DType.INT16, 16), Map.entry(DType.FLOAT16, 16),
      Map.entry(DType.BFLOAT16, 16), Map.entry(DType.INT32, 32), Map.entry(DType.FLOAT32, 32),
      Map.entry(DType.INT64, 64), Map.entry(DType.UINT32, 32), Map.entry(DType.UINT64, 64),
      Map.entry(DType.FLOAT64, 64));

  private Elements() {}

  static double real(JsonElement value) {
    return switch (value.getAsString()) {
      case "nan" -> Double.NaN;
      case "inf" -> Double.POSITIVE_INFINITY;
      case "-inf" -> Double.NEGATIVE_INFINITY;
      default -> value.getAsDouble();
    };
  }

  static byte[] bytesOf(DType dtype, JsonArray values) {
    int bits = BITS.get(dtype);
    ByteBuffer bytes = ByteBuffer.allocate((values.size() * bits + 7) / 8).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < values.size(); ++i) {
      JsonElement value = values.get(i);
      int at = i * bits / 8;
      switch (dtype) {
        case FLOAT32 -> bytes.putFloat(at, (float) real(value));
        case FLOAT64 -> bytes.putDouble(at, real(value));
        default -> put(bytes, at, bits, i, value.getAsBigInteger().longValue());
      }
    }
    return bytes.array();
  }

  private static void put(ByteBuffer bytes, int at, int bits, int index, long value) {
    switch (bits) {
      case 64 -> bytes.putLong(at, value);
      case 32 -> bytes.putInt(at, (int) value);
      case 16 -> bytes.putShort(at, (short) value);
      case 8 -> bytes.put(at, (byte) value);
      default -> bytes.put(at, (byte) (bytes.get(at) | (value & (1 << bits) - 1) << index * bits % 8));
    }
  }

  static JsonArray elementsOf(Tensor tensor) {
    DType dtype = tensor.dtype();
    int bits = BITS.get(dtype);
    ByteBuffer bytes = ByteBuffer.wrap(tensor.toByteArray()).order(ByteOrder.LITTLE_ENDIAN);
    JsonArray elements = new JsonArray();
    for (int i = 0; i < tensor.numel(); ++i) {
      int at = i * bits / 8;
      elements.add(switch (dtype) {
        case FLOAT32 -> bytes.getFloat(at) + 0.0;
        case FLOAT64 -> bytes.getDouble(at);
        default -> whole(bytes, at, bits, i, dtype.name().startsWith("INT"));
      });
    }
    return elements;
  }

  private static Number whole(ByteBuffer bytes, int at, int bits, int index, boolean signed) {
    long value = switch (bits) {
      case 64 -> bytes.getLong(at);
      case 32 -> bytes.getInt(at);
      case 16 -> bytes.getShort(at);
      default -> bytes.get(at) >> index * bits % 8;
    };
    int rest = 64 - bits;
    return signed ? value << rest >> rest : value << rest >>> rest;
  }
}
