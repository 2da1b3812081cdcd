"""Reads Chakra execution traces with Google's protobuf: python3 read_chakra.py DIR

Checks that every file of `shardwise simulate --chakra DIR` parses as mlcommons/chakra's
schema/protobuf/et_def.proto has it, with no field left over, that nodes wait for earlier ones, and
that groups agree; then prints how many nodes of each kind there are. Needs the protobuf package.
"""

import collections
import json
import pathlib
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.internal.decoder import _DecodeVarint32

KINDS = {4: "compute", 5: "send", 6: "receive", 7: "collective"}


def schema():
    """The messages that are written, with the numbers and types of et_def.proto."""
    file = descriptor_pb2.FileDescriptorProto(
        name="et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    field = descriptor_pb2.FieldDescriptorProto
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED

    def message(name, fields):
        made = file.message_type.add(name=name)
        for key, number, kind, label, type_name in fields:
            made.field.add(name=key, number=number, type=kind, label=label, type_name=type_name)

    attribute = ".ChakraProtoMsg.AttributeProto"
    message(
        "AttributeProto",
        [
            ("name", 1, field.TYPE_STRING, one, None),
            ("int32_val", 7, field.TYPE_INT32, one, None),
            ("int64_val", 9, field.TYPE_INT64, one, None),
            ("bool_val", 27, field.TYPE_BOOL, one, None),
            ("string_val", 29, field.TYPE_STRING, one, None),
        ],
    )
    message(
        "GlobalMetadata",
        [
            ("version", 1, field.TYPE_STRING, one, None),
            ("attr", 2, field.TYPE_MESSAGE, many, attribute),
        ],
    )
    message(
        "Node",
        [
            ("id", 1, field.TYPE_UINT64, one, None),
            ("name", 2, field.TYPE_STRING, one, None),
            ("type", 3, field.TYPE_INT32, one, None),
            ("ctrl_deps", 4, field.TYPE_UINT64, many, None),
            ("data_deps", 5, field.TYPE_UINT64, many, None),
            ("start_time_micros", 6, field.TYPE_UINT64, one, None),
            ("duration_micros", 7, field.TYPE_UINT64, one, None),
            ("attr", 10, field.TYPE_MESSAGE, many, attribute),
        ],
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    get = lambda name: message_factory.GetMessageClass(
        pool.FindMessageTypeByName("ChakraProtoMsg." + name)
    )
    return get("GlobalMetadata"), get("Node")


def messages(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        size, at = _DecodeVarint32(data, at)
        yield data[at : at + size]
        at += size
    assert at == len(data), f"{path}: ends within a message"


def main():
    folder = pathlib.Path(sys.argv[1])
    metadata, node_type = schema()
    groups = json.loads((folder / "comm_groups.json").read_text())
    calls = collections.defaultdict(dict)
    count = collections.Counter()
    for path in folder.glob("step.*.et"):
        rank = int(path.suffixes[0][1:])
        stream = messages(path)
        head = metadata.FromString(next(stream))
        assert head.version == "0.0.4", path
        seen = set()
        for text in stream:
            node = node_type.FromString(text)
            assert len(unknown_fields.UnknownFieldSet(node)) == 0, node
            assert seen.issuperset(node.data_deps), node
            seen.add(node.id)
            count[KINDS[node.type]] += 1
            if node.type != 7:
                continue
            values = {each.name: each for each in node.attr}
            group = values["pg_name"].string_val
            assert rank in groups[group], node
            call = (values["comm_type"].int64_val, values["comm_size"].int64_val)
            calls[group].setdefault(rank, []).append(call)
    for group, by_rank in calls.items():
        assert sorted(by_rank) == sorted(groups[group]), group
        assert len({tuple(each) for each in by_rank.values()}) == 1, group
    print(", ".join(f"{number} {kind}" for kind, number in sorted(count.items())))


if __name__ == "__main__":
    main()
