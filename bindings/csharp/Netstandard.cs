// SPDX-License-Identifier: Apache-2.0
// Makes an assembly of mcs one for .NET: it names netstandard 2.1 where mcs named mono's own assemblies. The mscorlib of .NET
// lacks types that mono's has: Span.
// usage: mono Netstandard.exe FROM TO
using System;
using System.Linq;
using Mono.Cecil;

internal static class Netstandard {
  private static void Main(string[] arguments) {
    var netstandard = new AssemblyNameReference("netstandard", new Version(2, 1, 0, 0)) {
      PublicKeyToken = new byte[] { 0xcc, 0x7b, 0x13, 0xff, 0xcd, 0x2d, 0xdd, 0x51 }
    };
    using (ModuleDefinition module = ModuleDefinition.ReadModule(arguments[0])) {
      AssemblyNameReference[] monos =
          module.AssemblyReferences.Where(name => name.Name == "mscorlib" || name.Name.StartsWith("System")).ToArray();
      TypeReference[] types = module.GetTypeReferences().Where(type => monos.Contains(type.Scope)).ToArray();
      module.AssemblyReferences.Add(netstandard);
      foreach (TypeReference type in types) type.Scope = netstandard;
      foreach (AssemblyNameReference mono in monos) module.AssemblyReferences.Remove(mono);
      module.Assembly.SecurityDeclarations.Clear();  // mscorlib by a name in a text; .NET does not read them
      module.Write(arguments[1]);
    }
  }
}
