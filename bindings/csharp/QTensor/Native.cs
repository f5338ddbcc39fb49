// SPDX-License-Identifier: Apache-2.0
// Values on their way between C# and C++. values.hpp is the other side.
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;

namespace QTensor {

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
internal delegate void FailFunction(int status, IntPtr message, long size);

internal static unsafe partial class corePINVOKE {
  // Registered before any other function can be called, and kept for as long as they can.
  internal static readonly FailFunction Fail = OnFailure();

  [DllImport("qtensorcs")]
  private static extern void qcs_on_failure(FailFunction fail);

  [DllImport("qtensorcs")]
  internal static extern void qcs_free(IntPtr block);

  private static FailFunction OnFailure() {
    FailFunction fail = (status, message, size) => SWIGPendingException.Exception =
        new QTensorException((Status)status, Utf8.Text(message, size));
    qcs_on_failure(fail);
    return fail;
  }

  // What a call has failed with, until it is back. SWIG writes code that asks for it by these names.
  internal static class SWIGPendingException {
    [ThreadStatic]
    internal static Exception Exception;

    internal static bool Pending => Exception != null;

    internal static Exception Retrieve() {
      Exception exception = Exception;
      Exception = null;
      return exception;
    }
  }
}

/// <summary>Memory of an array, pinned for a call.</summary>
[StructLayout(LayoutKind.Sequential)]
internal unsafe struct Pinned {
  private readonly void *data;
  private readonly long size;

  internal Pinned(void *data, long size) {
    this.data = data;
    this.size = size;
  }

  internal static int Length(Array array, string name) {
    if (array == null) throw new ArgumentNullException(name);
    return array.Length;
  }

  internal static long NotNegative(long value, string name) {
    if (value < 0) throw new ArgumentOutOfRangeException(name, value, name + " is below 0");
    return value;
  }
}

internal static unsafe class Utf8 {
  private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

  internal static string Text(IntPtr bytes, long size) => Encoding.UTF8.GetString((byte *)bytes, checked((int)size));

  internal static byte[] Bytes(string text, string name) {
    if (text == null) throw new ArgumentNullException(name);
    if (text.IndexOf('\0') >= 0) throw new ArgumentException("\"" + text + "\" holds the character 0", name);
    return Strict.GetBytes(text);
  }
}

/// <summary>What a call gives back: the number of elements, then these.</summary>
internal unsafe struct Block : IDisposable {
  private readonly IntPtr memory;

  private Block(IntPtr memory) {
    this.memory = memory;
  }

  private int Count => checked((int)*(long *)memory);
  private IntPtr Elements => memory + sizeof(long);

  public void Dispose() => corePINVOKE.qcs_free(memory);

  internal static string Text(IntPtr memory) {
    if (memory == IntPtr.Zero) return null;
    using (var block = new Block(memory)) return Utf8.Text(block.Elements, block.Count);
  }

  internal static byte[] Bytes(IntPtr memory) {
    using (var block = new Block(memory)) {
      var bytes = new byte[block.Count];
      Marshal.Copy(block.Elements, bytes, 0, bytes.Length);
      return bytes;
    }
  }

  internal static long[] Longs(IntPtr memory) {
    using (var block = new Block(memory)) {
      var longs = new long[block.Count];
      Marshal.Copy(block.Elements, longs, 0, longs.Length);
      return longs;
    }
  }

  internal static double[] Doubles(IntPtr memory) {
    using (var block = new Block(memory)) {
      var doubles = new double[block.Count];
      Marshal.Copy(block.Elements, doubles, 0, doubles.Length);
      return doubles;
    }
  }

  internal static Dictionary<string, object> Attributes(IntPtr memory) {
    var attributes = new Dictionary<string, object>();
    using (var reader = new BinaryReader(new MemoryStream(Bytes(memory)))) {
      while (reader.BaseStream.Position < reader.BaseStream.Length) {
        string key = Text(reader);
        attributes[key] = Attribute(reader, Text(reader));
      }
    }
    return attributes;
  }

  private static object Attribute(BinaryReader reader, string kind) {
    switch (kind) {
      case "int": return reader.ReadInt64();
      case "float": return reader.ReadDouble();
      case "string": return Text(reader);
      case "ints": return List(reader, reader.ReadInt64);
      case "floats": return List(reader, reader.ReadDouble);
      default: return new Tensor(new Tensor.NativeHandle((IntPtr)reader.ReadInt64()));
    }
  }

  private static string Text(BinaryReader reader) => Encoding.UTF8.GetString(reader.ReadBytes(checked((int)reader.ReadInt64())));

  private static T[] List<T>(BinaryReader reader, Func<T> read) {
    var list = new T[reader.ReadInt64()];
    for (int i = 0; i < list.Length; ++i) list[i] = read();
    return list;
  }

  internal static Tensor[] Tensors(IntPtr memory) {
    using (var block = new Block(memory)) {
      var tensors = new Tensor[block.Count];
      for (int i = 0; i < tensors.Length; ++i) {
        IntPtr tensor = ((IntPtr *)block.Elements)[i];
        if (tensor != IntPtr.Zero) tensors[i] = new Tensor(new Tensor.NativeHandle(tensor));
      }
      return tensors;
    }
  }
}

/// <summary>The handles of a list of tensors, which stay open meanwhile. A null stands for an absent tensor.</summary>
internal sealed class HeldTensors : IDisposable {
  internal readonly IntPtr[] Pointers;
  private readonly Tensor.NativeHandle[] handles;
  private int held;

  internal HeldTensors(IReadOnlyList<Tensor> tensors, string name) {
    if (tensors == null) throw new ArgumentNullException(name);
    Pointers = new IntPtr[tensors.Count];
    handles = new Tensor.NativeHandle[Pointers.Length];
    try {
      for (int i = 0; i < Pointers.Length; ++i) Hold(Tensor.Optional(tensors[i], name));
    } catch {
      Dispose();
      throw;
    }
  }

  private void Hold(Tensor.NativeHandle handle) {
    bool added = false;
    handle.DangerousAddRef(ref added);
    Pointers[held] = handle.DangerousGetHandle();
    handles[held++] = handle;
  }

  public void Dispose() {
    while (held > 0) handles[--held].DangerousRelease();
  }
}

/// <summary>Texts and options as bytes, which Decoder reads in C++.</summary>
internal static class Encoder {
  private static readonly byte[] Nothing = new byte[0];

  internal static byte[] Text(string text, string name) => Utf8.Bytes(text, name);

  internal static byte[] Texts(IEnumerable<string> texts, string name) {
    if (texts == null) throw new ArgumentNullException(name);
    return Written(writer => {
      foreach (string text in texts) Write(writer, text, name);
    });
  }

  internal static byte[] Attributes(IDictionary<string, object> attributes, string name) {
    if (attributes == null) return Nothing;
    return Written(writer => {
      writer.Write((byte)0);  // not Nothing, even where there are none
      foreach (KeyValuePair<string, object> attribute in attributes) {
        Write(writer, attribute.Key, name);
        WriteValue(writer, attribute.Key, attribute.Value, name);
      }
    });
  }

  private static byte[] Written(Action<BinaryWriter> write) {
    using (var bytes = new MemoryStream()) {
      using (var writer = new BinaryWriter(bytes)) write(writer);
      return bytes.ToArray();
    }
  }

  private static void Write(BinaryWriter writer, string text, string name) {
    byte[] bytes = Utf8.Bytes(text, name);
    writer.Write((ulong)bytes.Length);
    writer.Write(bytes);
  }

  private static void WriteValue(BinaryWriter writer, string key, object value, string name) {
    if (value is string text) {
      writer.Write((byte)'s');
      Write(writer, text, name);
    } else if (IsWhole(value)) {
      writer.Write((byte)'i');
      writer.Write(Convert.ToInt64(value));
    } else if (IsReal(value)) {
      writer.Write((byte)'f');
      writer.Write(Convert.ToDouble(value));
    } else if (!(value is IEnumerable list) || !WriteList(writer, list)) {
      throw new ArgumentException("attribute \"" + key + "\" is " + (value == null ? "null" : "of type " + value.GetType()) +
                                  ", not a whole or a real number, a bool, a string, or a list of numbers", name);
    }
  }

  private static bool WriteList(BinaryWriter writer, IEnumerable list) {
    bool whole = true;
    ulong count = 0;
    foreach (object item in list) {
      ++count;
      if (IsWhole(item)) continue;
      if (!IsReal(item)) return false;
      whole = false;
    }
    writer.Write((byte)(whole ? 'I' : 'F'));
    writer.Write(count);
    foreach (object item in list) {
      if (whole) writer.Write(Convert.ToInt64(item));
      else writer.Write(Convert.ToDouble(item));
    }
    return true;
  }

  private static bool IsWhole(object value) => value is int || value is long || value is bool || value is short || value is byte ||
                                               value is sbyte || value is ushort || value is uint;

  private static bool IsReal(object value) => value is double || value is float;
}

}
