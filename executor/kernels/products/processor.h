#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace shardwise::exec {

/// Instructions that kernels of matrix products are written for.
enum class Feature : std::uint8_t {
  sse3,
  ssse3,
  sse4_1,
  sse4_2,
  amd_3dnow,
  avx,
  fma,
  fma4,
  avx2,
  avx512,  // F, DQ, BW, VL and CD together
  avx512_bf16,
  avx512_fp16,
  amx,  // tiles with products of bf16
};

/// A set of instructions.
class Features {
 public:
  constexpr Features() = default;
  template <class... More>
  constexpr explicit Features(Feature first, More... more)
      : bits_((bit(first) | ... | bit(more))) {}

  constexpr bool has(const Features& all) const { return (bits_ & all.bits_) == all.bits_; }
  constexpr bool has(Feature one) const { return (bits_ & bit(one)) != 0; }
  constexpr void add(Feature one) { bits_ |= bit(one); }
  /// Those of this set that `other` lacks.
  constexpr Features without(const Features& other) const {
    Features rest;
    rest.bits_ = bits_ & ~other.bits_;
    return rest;
  }
  constexpr Features operator|(const Features& other) const {
    Features both;
    both.bits_ = bits_ | other.bits_;
    return both;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Features&) const = default;

 private:
  static constexpr std::uint32_t bit(Feature one) {
    return std::uint32_t{1} << static_cast<unsigned>(one);
  }
  std::uint32_t bits_ = 0;
};

/// "AVX2, FMA", in the order of Feature; empty of none.
std::string to_string(const Features& features);

/// A processor, by what it runs and not by its model: libraries do not know the models that are
/// younger than themselves.
struct Processor {
  Features features;  // whose registers the operating system saves, too
  bool amd = false;   // AMD's or Hygon's
};

/// Registers that the instructions cpuid and xgetbv fill.
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID; AMD64
/// Architecture Programmer's Manual, volume 3, appendix E.
struct ProcessorRegisters {
  std::array<char, 12> vendor{};  // "AuthenticAMD"
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;    // of subleaf 1
  std::uint32_t extended1_ecx = 0;  // of leaf 0x80000001
  std::uint32_t extended1_edx = 0;
  std::uint64_t saved = 0;  // registers that the operating system saves (XCR0)
};
Processor processor_of(const ProcessorRegisters& registers);

/// The processor that this thread runs on; of another architecture than x86-64, one without
/// features.
Processor this_processor();

}  // namespace shardwise::exec
