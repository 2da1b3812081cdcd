#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise::exec::test {

inline constexpr auto kCompute = Stream::compute;
inline constexpr auto kGather = Stream::all_gather;

/// An operation of a program made by hand.
struct MadeOp {
  Stream stream = Stream::compute;
  std::vector<std::uint32_t> waits;
};

/// Operations named fwd.layer0, fwd.layer1, … of no memory and one cost.
StageProgram made_program(const std::vector<MadeOp>& ops);

/// `count` operations on `streams` streams, each with up to three waits for earlier ones.
StageProgram random_program(std::mt19937& random, std::uint32_t count, int streams);

/// The operations that must be over before operation `op` begins: the one before it on its stream
/// and those that it waits for.
std::vector<std::uint32_t> before(const StageProgram& program, std::uint32_t op);

}  // namespace shardwise::exec::test
