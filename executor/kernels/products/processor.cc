#include "executor/kernels/products/processor.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace shardwise::exec {
namespace {

/// In the order of Feature.
constexpr std::array<std::string_view, 13> kFeatureNames = {
    "SSE3", "SSSE3", "SSE4.1",  "SSE4.2",       "3DNow!",       "AVX", "FMA",
    "FMA4", "AVX2",  "AVX-512", "AVX-512 BF16", "AVX-512 FP16", "AMX"};

// Registers of vectors and tiles in XCR0.
constexpr std::uint64_t kSavedAvx = 0x6;
constexpr std::uint64_t kSavedAvx512 = 0xe6;
constexpr std::uint64_t kSavedTiles = 0x60000;

constexpr bool all_set(std::uint64_t value, std::uint64_t mask) { return (value & mask) == mask; }
constexpr std::uint32_t bit_of(int number) { return std::uint32_t{1} << number; }

}  // namespace

std::string to_string(const Features& features) {
  std::string text;
  for (std::size_t i = 0; i < kFeatureNames.size(); ++i) {
    if (!features.has(static_cast<Feature>(i))) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", kFeatureNames[i]);
  }
  return text;
}

Processor processor_of(const ProcessorRegisters& r) {
  Processor made;
  const std::string_view vendor(r.vendor.data(), r.vendor.size());
  made.amd = vendor == "AuthenticAMD" || vendor == "HygonGenuine";
  const auto add = [&](Feature feature, std::uint32_t value, std::uint32_t mask) {
    if (all_set(value, mask)) made.features.add(feature);
  };
  add(Feature::sse3, r.leaf1_ecx, bit_of(0));
  add(Feature::ssse3, r.leaf1_ecx, bit_of(9));
  add(Feature::sse4_1, r.leaf1_ecx, bit_of(19));
  add(Feature::sse4_2, r.leaf1_ecx, bit_of(20));
  add(Feature::amd_3dnow, r.extended1_edx, bit_of(31));
  if (!all_set(r.saved, kSavedAvx)) return made;
  add(Feature::avx, r.leaf1_ecx, bit_of(28));
  add(Feature::fma, r.leaf1_ecx, bit_of(12));
  add(Feature::fma4, r.extended1_ecx, bit_of(16));
  add(Feature::avx2, r.leaf7_ebx, bit_of(5));
  if (all_set(r.saved, kSavedAvx512)) {
    // F, DQ, CD, BW, VL.
    add(Feature::avx512, r.leaf7_ebx,
        bit_of(16) | bit_of(17) | bit_of(28) | bit_of(30) | bit_of(31));
    add(Feature::avx512_bf16, r.leaf7_1_eax, bit_of(5));
    add(Feature::avx512_fp16, r.leaf7_edx, bit_of(23));
  }
  if (all_set(r.saved, kSavedTiles)) add(Feature::amx, r.leaf7_edx, bit_of(22) | bit_of(24));
  return made;
}

#ifdef __x86_64__

Processor this_processor() {
  ProcessorRegisters r;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return {};
  std::memcpy(r.vendor.data(), &b, 4);
  std::memcpy(r.vendor.data() + 4, &d, 4);
  std::memcpy(r.vendor.data() + 8, &c, 4);
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) r.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    r.leaf7_ebx = b;
    r.leaf7_edx = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) r.leaf7_1_eax = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) {
    r.extended1_ecx = c;
    r.extended1_edx = d;
  }
  constexpr std::uint32_t kReadable = std::uint32_t{1} << 27;  // xgetbv may be used
  if ((r.leaf1_ecx & kReadable) != 0) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    r.saved = std::uint64_t{high} << 32 | low;
  }
  return processor_of(r);
}

#else

Processor this_processor() { return {}; }

#endif

}  // namespace shardwise::exec
