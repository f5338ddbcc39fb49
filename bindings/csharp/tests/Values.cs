// SPDX-License-Identifier: Apache-2.0
// The values of the cases: JSON, and elements of tensors as the cases write them.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;
using QTensor;

/// <summary>JSON as dictionaries, lists, texts, bools, longs and doubles. The reader of .NET Core 3.1 would want an OpenSSL that
/// Debian no longer has.</summary>
internal static class Json {
  private static readonly Regex Token = new Regex(@"\G\s*([][{}:,]|""(?:[^""\\]|\\.)*""|[^][{}:,""\s]+)");

  internal static object Read(byte[] bytes) => Read(Encoding.UTF8.GetString(bytes));

  internal static object Read(string text) =>
      Value(new Queue<string>(Token.Matches(text).Cast<Match>().Select(match => match.Groups[1].Value)));

  private static object Value(Queue<string> tokens) {
    string token = tokens.Dequeue();
    switch (token) {
      case "{":
        var members = new Dictionary<string, object>();
        Each(tokens, "}", () => {
          string key = Text(tokens.Dequeue());
          Skip(tokens, ":");
          members.Add(key, Value(tokens));
        });
        return members;
      case "[":
        var elements = new List<object>();
        Each(tokens, "]", () => elements.Add(Value(tokens)));
        return elements;
      case "true":
      case "false":
        return token == "true";
      case "null":
        return null;
      default:
        if (token[0] == '"') return Text(token);
        return long.TryParse(token, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long whole)
                   ? whole
                   : (object)double.Parse(token, CultureInfo.InvariantCulture);
    }
  }

  private static void Each(Queue<string> tokens, string end, Action read) {
    for (bool first = true; tokens.Peek() != end; first = false) {
      if (!first) Skip(tokens, ",");
      read();
    }
    Skip(tokens, end);
  }

  private static void Skip(Queue<string> tokens, string want) {
    string got = tokens.Dequeue();
    if (got != want) throw new FormatException("JSON has " + got + " where " + want + " must be");
  }

  private static string Text(string token) => Regex.Unescape(token.Substring(1, token.Length - 2));
}

/// <summary>Floats of 32 and 64 bits as reals, narrower ones as bit patterns, packed integers one by one.</summary>
internal static class ElementsOf {
  private static readonly Dictionary<DType, int> Bits = new Dictionary<DType, int> {
    { DType.UInt2, 2 },       { DType.Int2, 2 },      { DType.UInt4, 4 },    { DType.Int4, 4 },     { DType.UInt8, 8 },
    { DType.Int8, 8 },        { DType.Bool, 8 },      { DType.UInt16, 16 },  { DType.Int16, 16 },   { DType.Int32, 32 },
    { DType.Int64, 64 },      { DType.Float16, 16 },  { DType.BFloat16, 16 }, { DType.Float8E4M3FN, 8 }, { DType.Float8E5M2, 8 },
    { DType.Float8E4M3FNUZ, 8 }, { DType.Float8E5M2FNUZ, 8 }, { DType.Float8E8M0, 8 }, { DType.Float4E2M1, 4 },
    { DType.Float32, 32 },    { DType.Float64, 64 },  { DType.UInt32, 32 },  { DType.UInt64, 64 },
  };

  internal static double Real(object value) {
    switch (value as string) {
      case "nan":
        return double.NaN;
      case "inf":
        return double.PositiveInfinity;
      case "-inf":
        return double.NegativeInfinity;
      default:
        return Convert.ToDouble(value);
    }
  }

  /// <summary>Nothing for a number that is no dtype.</summary>
  internal static byte[] Bytes(DType dtype, IList<object> values) {
    if (!Bits.TryGetValue(dtype, out int bits)) return new byte[0];
    var bytes = new byte[(values.Count * bits + 7) / 8];
    for (int i = 0; i < values.Count; ++i) {
      ulong pattern = Pattern(dtype, values[i]);
      for (int bit = 0; bit < bits; ++bit)
        if ((pattern >> bit & 1) != 0) bytes[(i * bits + bit) / 8] |= (byte)(1 << (i * bits + bit) % 8);
    }
    return bytes;
  }

  internal static List<object> List(Tensor tensor) {
    byte[] bytes = tensor.ToBytes();
    int bits = Bits[tensor.Dtype];
    var values = new List<object>();
    for (int i = 0; i < tensor.Numel; ++i) {
      ulong pattern = 0;
      for (int bit = 0; bit < bits; ++bit)
        pattern |= (ulong)(bytes[(i * bits + bit) / 8] >> (i * bits + bit) % 8 & 1) << bit;
      values.Add(Value(tensor.Dtype, pattern, bits));
    }
    return values;
  }

  private static ulong Pattern(DType dtype, object value) {
    if (dtype == DType.Float32) return BitConverter.ToUInt32(BitConverter.GetBytes((float)Real(value)), 0);
    if (dtype == DType.Float64) return (ulong)BitConverter.DoubleToInt64Bits(Real(value));
    return unchecked((ulong)Convert.ToInt64(value));
  }

  private static object Value(DType dtype, ulong pattern, int bits) {
    if (dtype == DType.Float32) return (double)BitConverter.ToSingle(BitConverter.GetBytes((uint)pattern), 0);
    if (dtype == DType.Float64) return BitConverter.Int64BitsToDouble((long)pattern);
    bool negative = dtype.ToString().StartsWith("Int") && (pattern >> bits - 1 & 1) != 0;
    return negative && bits < 64 ? (long)pattern - (1L << bits) : (long)pattern;
  }
}
