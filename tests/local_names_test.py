#!/usr/bin/env python3
"""tests/local_names.py finds what it should: a name of each kind, planted in two sources of a folder."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from local_names import shared_names

ONE = """#include "planner/a.h"
namespace shardwise {
namespace {

constexpr std::size_t kMost = 8;
const std::array<Row, 2> kRows = {};
constexpr const char* kTexts[] = {};
struct Walk {
  int inner = 0;
};
enum class Kind { one };
using Words = std::vector<std::string>;
template <class T>
struct Made {};
std::int64_t sum(const Walk& walk) { return walk.inner; }
std::vector<std::pair<int, int>> pairs(
    int many);
bool none() { return false; }
int own_a = 0;
static int counted(int many) { return many; }

}  // namespace

int shown() { return 1; }
}  // namespace shardwise
"""
LOCAL = ["Kind", "Made", "Walk", "Words", "counted", "kMost", "kRows", "kTexts", "none", "pairs", "sum"]


def main():
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "planner", "model")
        os.makedirs(folder)
        os.makedirs(os.path.join(root, "planner", "search"))
        for path in ("model/a.cc", "model/b.cc", "search/a.cc"):
            with open(os.path.join(root, "planner", path), "w", encoding="utf-8") as file:
                file.write(ONE.replace("own_a", "own_" + path[-4]))
        found = list(shared_names(root))
    names = [name for _, name, _ in found]
    assert names == LOCAL, names
    assert {(folder, *sources) for folder, _, sources in found} == {("planner/model", "a.cc", "b.cc")}, found


if __name__ == "__main__":
    main()
