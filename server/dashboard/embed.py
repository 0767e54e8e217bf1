"""Writes files as C++ source, so that a program carries its own web page: embed.py OUTPUT FILE..."""

import pathlib
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
LINE = 32

output, *files = map(pathlib.Path, sys.argv[1:])
source = ['#include "server/dashboard/web_files.h"\n\nnamespace hooke {\nnamespace {\n']
entries = []
for number, file in enumerate(files):
    content = file.read_bytes()
    source.append(f"\nconst unsigned char kFile{number}[] = {{\n")
    for at in range(0, len(content), LINE):
        source.append("".join(f"{byte}," for byte in content[at : at + LINE]) + "\n")
    source.append("};\n")
    entries.append(f'      {{"{file.name}", "{TYPES[file.suffix]}", {{reinterpret_cast<const char*>(kFile{number}), sizeof kFile{number}}}}},\n')
source.append("\n}  // namespace\n\nconst std::vector<WebFile>& WebFiles() {\n  static const auto& files = *new std::vector<WebFile>{\n")
source += entries
source.append("  };\n  return files;\n}\n\n}  // namespace hooke\n")
output.write_text("".join(source))
