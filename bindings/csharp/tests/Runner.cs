// SPDX-License-Identifier: Apache-2.0
// Runs the methods of a class that are marked [Test], each on an object of its own.
// usage: mono Tests.exe CLASS [METHOD]
using System;
using System.Linq;
using System.Reflection;
using QTensor;

[AttributeUsage(AttributeTargets.Method)]
internal sealed class TestAttribute : Attribute {}

internal static class Check {
  internal static void True(bool condition, string otherwise) {
    if (!condition) throw new Exception(otherwise);
  }

  internal static void Equal<T>(T want, T got) => True(Equals(want, got), "is " + got + ", not " + want);

  internal static void Equal<T>(T[] want, T[] got) =>
      True(want.SequenceEqual(got), "is [" + string.Join(", ", got) + "], not [" + string.Join(", ", want) + "]");

  internal static void Contains(string part, string text) => True(text.Contains(part), "\"" + text + "\" has no \"" + part + "\"");

  internal static E Throws<E>(Action call, string message = "") where E : Exception {
    try {
      call();
    } catch (E exception) {
      Contains(message, exception.Message);
      return exception;
    } catch (Exception exception) {
      throw new Exception("throws " + exception + ", no " + typeof(E));
    }
    throw new Exception("throws no " + typeof(E));
  }

  internal static void Throws(Status status, string message, Action call) =>
      Equal(status, Throws<QTensorException>(call, message).Status);
}

internal static class Tests {
  private static int Main(string[] arguments) {
    Type type = typeof(Tests).Assembly.GetType(arguments[0], true);
    MethodInfo[] tests = type.GetMethods(BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public)
        .Where(method => method.IsDefined(typeof(TestAttribute)) && (arguments.Length < 2 || method.Name == arguments[1])).ToArray();
    int failed = tests.Count(test => !Passes(type, test));
    Console.WriteLine(tests.Length + " tests, " + failed + " failed");
    return tests.Length > 0 && failed == 0 ? 0 : 1;
  }

  private static bool Passes(Type type, MethodInfo test) {
    Console.WriteLine("  " + test.Name);
    try {
      test.Invoke(Activator.CreateInstance(type, true), null);
      return true;
    } catch (TargetInvocationException exception) {
      Console.WriteLine("FAILED " + test.Name + ": " + exception.InnerException);
      return false;
    }
  }
}
