"""What the tables of networks share: their options, and a row for each network and number of threads, failures included."""

import argparse
import pathlib
import sys

import onnxruntime

import peer_lib
import record
from models import zoo


def parser_of(description, threads, seconds, rounds):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, default="build/release/python", help="of ours (%(default)s)")
    parser.add_argument("--models", type=pathlib.Path, default=peer_lib.cache_folder() / "zoo", help="made here (%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=threads)
    parser.add_argument("--seconds", type=float, default=seconds, help="of a turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--csv", type=pathlib.Path, help="file to write the rows to")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="of the zoo, or a file")
    return parser


def write(parser, names, fields, measure):
    """Calls measure(path, threads, arguments) for the columns of each row. Returns the arguments and all rows."""
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.python))
    about = {"cpu": record.cpu_name(), "peers": f"onnxruntime {onnxruntime.__version__}"}
    rows = []
    for name in arguments.names or names:
        for threads in arguments.threads:
            row = {"model": pathlib.Path(name).stem, "threads": threads}
            try:
                path = pathlib.Path(name) if name.endswith(".onnx") else zoo.make(name, arguments.models)
                row |= measure(path, threads, arguments)
            except Exception as error:
                row["error"] = "error: " + (str(error).strip() or type(error).__name__).splitlines()[-1][:160]
            rows.append(row | about)
            print(*(f"{key}={row[key]}" for key in fields[:-2] if key in row), flush=True)
            if arguments.csv:
                record.write_csv(arguments.csv, rows, fields)
    return arguments, rows
