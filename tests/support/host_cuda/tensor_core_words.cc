// What a warp does by tensor cores, and asynchronous copies.
#include <array>
#include <bit>
#include <cstdint>

#include "tests/support/host_cuda/machine.h"

namespace host_cuda {
namespace {

/// The warp of the running thread, to which each of its lanes brings `bytes`; the last one that
/// comes calls complete(warp).
template <class F>
void bring(const void* mine, std::size_t bytes, void* place, const char* what, F complete) {
  const Machine& m = machine();
  const int number = running(m, what).number;
  Warp& warp = m.warps[static_cast<std::size_t>(number / kLanes)];
  Wish& wish = warp.wishes[static_cast<std::size_t>(number % kLanes)];
  copy(wish.brought.data(), mine, bytes);
  wish.place = place;
  meet_warp(~0U, false, what, [&warp, complete] { complete(warp); });
}

struct MmaOperands {
  std::array<unsigned, 4> a;
  std::array<unsigned, 2> b;
  std::array<float, 4> c;
};
float bf16(unsigned pair, unsigned which) {
  return std::bit_cast<float>(which == 0 ? pair << 16U : pair & 0xffff0000U);
}

void multiply_warp(const Warp& warp) {
  std::array<std::array<double, 16>, 16> a;
  std::array<std::array<double, 8>, 16> b;
  std::array<MmaOperands, kLanes> operands;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    MmaOperands& own = operands[lane];
    copy(&own, warp.wishes[lane].brought.data(), sizeof(own));
    const unsigned group = lane / 4;
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned k = 2 * (lane % 4) + i % 2 + i / 4 * 8;
      a[group + i / 2 % 2 * 8][k] = static_cast<double>(bf16(own.a[i / 2], i % 2));
    }
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned k = 2 * (lane % 4) + i % 2 + i / 2 * 8;
      b[k][group] = static_cast<double>(bf16(own.b[i / 2], i % 2));
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::array<float, 4> c = operands[lane].c;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i / 2 * 8;
      const unsigned column = 2 * (lane % 4) + i % 2;
      auto sum = static_cast<double>(c[i]);
      for (unsigned k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      c[i] = static_cast<float>(sum);
    }
    copy(warp.wishes[lane].place, c.data(), sizeof(c));
  }
}

}  // namespace

void multiply(const unsigned* a, const unsigned* b, float* c) {
  MmaOperands mine;
  copy(mine.a.data(), a, sizeof(mine.a));
  copy(mine.b.data(), b, sizeof(mine.b));
  copy(mine.c.data(), c, sizeof(mine.c));
  bring(&mine, sizeof(mine), c, "mma.sync", &multiply_warp);
}

void distribute_matrices(const void* row, bool transposed, unsigned* made) {
  bring(row, 16, made, "ldmatrix", [transposed](const Warp& warp) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::array<std::array<std::uint16_t, 2>, 4> got;
      for (std::size_t n = 0; n < 8; ++n) {
        const std::size_t group = lane / 4;
        const std::size_t side = 2 * (lane % 4) + n % 2;
        const Wish& from = warp.wishes[8 * (n / 2) + (transposed ? side : group)];
        copy(&got[n / 2][n % 2], &from.brought[2 * (transposed ? group : side)], 2);
      }
      copy(warp.wishes[lane].place, got.data(), sizeof(got));
    }
  });
}

void begin_copy(const Copy& begun) {
  CopyList& list = running(machine(), "cp.async").copies;
  const auto both =
      std::bit_cast<std::uintptr_t>(begun.to) | std::bit_cast<std::uintptr_t>(begun.from);
  if (both % begun.bytes != 0) fail("cp.async of %zu bytes at another address", begun.bytes);
  if (list.count == list.at.size()) fail("more copies than cp.async is tried with");
  list.at[list.count++] = begun;
}

bool end_copy(Copy& ended) {
  CopyList& list = running(machine(), "cp.async.wait").copies;
  if (list.ended == list.count) {
    list.count = list.ended = 0;
    return false;
  }
  ended = list.at[list.ended++];
  return true;
}

}  // namespace host_cuda
