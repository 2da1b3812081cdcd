"""Registers, memory and threads of the kernels for NVIDIA's GPUs in an archive or object of nvcc, as ptxas noted them.

The code of a GPU is an ELF file within the host's object. Attributes of .nv.info are as cuobjdump -elf names them.
"""
import re
import struct

MACHINE = 190  # EM_CUDA
MAX_THREADS, FRAME_SIZE, REGISTERS = 0x05, 0x11, 0x2f  # EIATTR_…
SIZED = 4  # EIFMT_SVAL: a number of bytes follows


def members(path):
    """(name, bytes) of each object of an archive, or of the one object."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"!<arch>\n"):
        yield path, data
        return
    at, names = 8, b""
    while at < len(data):
        name, size = data[at:at + 16].decode().strip(), int(data[at + 48:at + 58])
        body = data[at + 60:at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            names = body
        elif name != "/":
            start = int(name[1:]) if name.startswith("/") else 0
            yield (names[start:names.index(b"\n", start)].decode() if name.startswith("/") else name).rstrip("/"), body


def sections(elf):
    """{name: (bytes in the file, size)} of an ELF file of 64 bits, and the names of its symbols."""
    start, = struct.unpack_from("<Q", elf, 40)
    entry, count, of_names = struct.unpack_from("<HHH", elf, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, start + i * entry) for i in range(count)]

    def text(table, offset):
        begin = heads[table][4] + offset
        return elf[begin:elf.index(b"\0", begin)].decode()

    symbols = []
    for head in heads:
        if head[1] == 2:  # SHT_SYMTAB
            symbols = [text(head[6], struct.unpack_from("<I", elf, head[4] + at)[0]) for at in range(0, head[5], 24)]
    nothing_in_file = 8  # SHT_NOBITS
    return {text(of_names, head[0]): (b"" if head[1] == nothing_in_file else elf[head[4]:head[4] + head[5]], head[5])
            for head in heads}, symbols


def attributes(info):
    """(attribute, its 32-bit words) of a section .nv.info."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        size = size if form == SIZED else 0
        yield attribute, struct.unpack_from(f"<{size // 4}I", info, at + 4)
        at += 4 + size


def architecture_of(elf, found):
    """90 for sm_90, by the note of CUDA 13, or else by the flags of the file."""
    note = found.get(".note.nv.cuinfo", (b"", 0))[0]
    return struct.unpack_from("<H", note, 26)[0] if len(note) >= 28 else struct.unpack_from("<I", elf, 48)[0] & 0xff


def kernels_of(path, architecture):
    """(version of ptxas, [(object, symbol, its facts)]) of the code for sm_`architecture`.

    Facts: registers of a thread, most threads of a block (0: not stated), bytes of shared memory of a block, with what is
    reserved of it, and bytes of local memory of a thread.
    """
    version, kernels = "unknown", []
    for name, data in members(path):
        at = data.find(b"\x7fELF", 4)
        while at != -1:
            elf = data[at:]
            if struct.unpack_from("<H", elf, 18)[0] == MACHINE:
                found, symbols = sections(elf)
                if architecture_of(elf, found) == architecture:
                    by_symbol = {}
                    for attribute, words in attributes(found.get(".nv.info", (b"", 0))[0]):
                        if attribute in (REGISTERS, FRAME_SIZE):
                            by_symbol.setdefault(symbols[words[0]], {})[attribute] = words[1]
                    for symbol, of_all in by_symbol.items():
                        if f".text.{symbol}" not in found or f".nv.info.{symbol}" not in found:
                            continue
                        own = dict(attributes(found[f".nv.info.{symbol}"][0]))
                        x, y, z = own.get(MAX_THREADS, (0, 0, 0))
                        kernels.append((name.removesuffix(".o"), symbol, {
                            "registers": of_all[REGISTERS], "threads": x * y * z, "local": of_all.get(FRAME_SIZE, 0),
                            "shared": found.get(f".nv.shared.{symbol}", (b"", 0))[1]}))
                    said = re.search(rb"\bV(\d+\.\d+\.\d+)", found.get(".note.nv.tkinfo", (b"", 0))[0])
                    version = said.group(1).decode() if said else version
            at = data.find(b"\x7fELF", at + 4)
    return version, kernels
