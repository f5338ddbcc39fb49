# SPDX-License-Identifier: Apache-2.0
"""The page of the C API, from its model: sections, and of each function declaration, parameters, options and result."""
import textwrap


def table(head, rows):
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells)


def link(name):
    return f"[`{name}`](#{name})"


def options(rows):
    own = [[f"`{row['key']}`", row["type"], row["default"], row["doc"]] for row in rows if "key" in row]
    others = [f"{link(row['of'])}: {row['doc']}." for row in rows if "of" in row]
    return "\n\n".join(([table(["option", "type", "default", "meaning"], own)] if own else []) + others)


def result(said):
    text = f"Returns {said['doc']}"
    if "values" not in said:
        return text + "."
    return f"{text}\n\n" + table(["status", ""], [[f"`{value['value']}`", value["doc"]] for value in said["values"]])


def of_function(function):
    parts = [f"### {function['name']}", f"```c\n{function['declaration']}\n```", function["doc"],
             "\n".join(f"- `{p['name']}`{' (may be NULL)' if p['nullable'] else ''}: {p['doc']}" for p in function["params"]),
             *(options(p["options"]) for p in function["params"] if "options" in p)]
    if function["return"]["type"] != "void":
        parts.append(result(function["return"]))
    return "\n\n".join(part for part in [*parts, f"Since {function['since']}."] if part)


def of_enum(enum):
    return f"### {enum['name']}\n\n{enum['doc']}\n\n" + table(["name", "value", "meaning"], [
        [f"`{value['name']}`", str(value["value"]), value["doc"]] for value in enum["values"]])


def of_callback(callback):
    arguments = ", ".join(f"{p['type']}{'' if p['type'].endswith('*') else ' '}{p['name']}" for p in callback["params"])
    declaration = f"typedef {callback['return']['type']} (*{callback['name']})({arguments});"
    parts = [f"### {callback['name']}", f"```c\n{textwrap.fill(declaration, 110)}\n```", callback["doc"],
             "\n".join(f"- `{p['name']}`: {p['doc']}" for p in callback["params"])]
    if callback["return"]["type"] != "void":
        parts.append(result(callback["return"]))
    return "\n\n".join(parts)


def page(api):
    functions = {function["name"]: function for function in api["functions"]}
    parts = ["# C, by function", "From `qtensor.h`, which has the same words.", api["introduction"]]
    for section in api["sections"]:
        parts += [f"## {section['title']}", section["doc"], *(of_function(functions[name]) for name in section["functions"])]
    parts += ["## Types", table(["handle", ""], [[f"`{handle['name']}`", handle["doc"]] for handle in api["handles"]])]
    parts += map(of_enum, api["enums"])
    parts += ["## Callbacks", *map(of_callback, api["callbacks"])]
    return "\n\n".join(parts) + "\n"
