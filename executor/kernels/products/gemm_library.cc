#include "executor/kernels/products/gemm_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "executor/kernels/products/onednn.h"
#include "planner/spec/text/utf8.h"

#ifdef SHARDWISE_CBLAS
#include <cblas.h>

extern "C" {
// Of OpenBLAS built for all processors (DYNAMIC_ARCH), exported by its library and its archive, and
// declared by none of its headers: the first forgets which kernels are used, the second chooses
// anew, by OPENBLAS_CORETYPE where it is set. Source: OpenBLAS, driver/others/dynamic.c.
[[gnu::weak]] void gotoblas_dynamic_quit(void);
[[gnu::weak]] void gotoblas_dynamic_init(void);
}
#else
#include <Eigen/Core>
#endif

namespace shardwise::exec {
namespace {

/// What the vectors of kernels are made by, each wider or with fewer instructions than before.
enum class Vectors : std::uint8_t { none, sse3, ssse3, sse4_2, avx, avx2, avx512 };

struct KernelsRow {
  std::string_view name;
  Vectors vectors = Vectors::none;
  Features more;        // that they need beside those of the vectors
  bool chosen = false;  // for processors whose widest vectors these are
};

// Kernels of products in fp32 that are alike are chosen by one name; the others are there for users
// to name. Source: OpenBLAS 0.3.21, kernel/x86_64/KERNEL.*.
constexpr std::array kRows = {
    KernelsRow{"Prescott", Vectors::sse3, {}, true},
    KernelsRow{"Opteron", Vectors::none, Features(Feature::amd_3dnow)},
    KernelsRow{"Opteron_SSE3", Vectors::sse3, Features(Feature::amd_3dnow)},
    KernelsRow{"Barcelona", Vectors::sse3, {}},
    KernelsRow{"Core2", Vectors::ssse3, {}, true},
    KernelsRow{"Atom", Vectors::ssse3, {}},
    KernelsRow{"Nano", Vectors::ssse3, {}},
    KernelsRow{"Bobcat", Vectors::ssse3, {}},
    KernelsRow{"Penryn", Vectors::ssse3, Features(Feature::sse4_1)},
    KernelsRow{"Dunnington", Vectors::ssse3, Features(Feature::sse4_1)},
    KernelsRow{"Nehalem", Vectors::sse4_2, {}, true},
    KernelsRow{"Sandybridge", Vectors::avx, {}, true},
    KernelsRow{"Bulldozer", Vectors::avx, Features(Feature::fma4)},
    KernelsRow{"Piledriver", Vectors::avx, Features(Feature::fma4, Feature::fma)},
    KernelsRow{"Steamroller", Vectors::avx, Features(Feature::fma4, Feature::fma)},
    KernelsRow{"Excavator", Vectors::avx2, Features(Feature::fma4)},
    KernelsRow{"Haswell", Vectors::avx2, {}, true},
    KernelsRow{"Zen", Vectors::avx2, {}},
    KernelsRow{"SkylakeX", Vectors::avx512, {}, true},
    KernelsRow{"Cooperlake", Vectors::avx512, Features(Feature::avx512_bf16)},
    KernelsRow{"SapphireRapids", Vectors::avx512, Features(Feature::avx512_bf16, Feature::amx)},
};

constexpr Features features_of(Vectors vectors) {
  Features all;
  if (vectors >= Vectors::sse3) all.add(Feature::sse3);
  if (vectors >= Vectors::ssse3) all.add(Feature::ssse3);
  if (vectors >= Vectors::sse4_2) all.add(Feature::sse4_2);
  if (vectors >= Vectors::avx) all.add(Feature::avx);
  if (vectors >= Vectors::avx2) {
    all.add(Feature::avx2);
    all.add(Feature::fma);
  }
  if (vectors >= Vectors::avx512) all.add(Feature::avx512);
  return all;
}

Features needed_by(const KernelsRow& row) { return features_of(row.vectors) | row.more; }

bool runs(const Processor& processor, const KernelsRow& row) {
  return processor.features.has(needed_by(row));
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const KernelsRow* row_of(std::string_view kernels) {
  const auto* const row = std::ranges::find_if(
      kRows, [&](const KernelsRow& each) { return same_name(each.name, kernels); });
  return row == kRows.end() ? nullptr : row;
}

/// Chosen kernels that a processor runs, of the widest vectors first.
std::vector<std::string_view> chosen_for(const Processor& processor) {
  std::vector<std::string_view> names;
  for (const KernelsRow& row : kRows) {
    if (!row.chosen || !runs(processor, row)) continue;
    // OpenBLAS's kernels of AVX2 are one set with sizes of blocks by maker.
    const bool zen = row.vectors == Vectors::avx2 && processor.amd;
    names.insert(names.begin(), zen ? "Zen" : row.name);
  }
  return names;
}

Vectors widest_of(const Processor& processor) {
  const std::vector<std::string_view> names = chosen_for(processor);
  return names.empty() ? Vectors::none : row_of(names.front())->vectors;
}

/// That narrow kernels leave the widest vectors of a processor alone, and what to do.
std::string warning_of(std::string_view kernels, const Processor& processor,
                       std::string_view cure) {
  const Vectors widest = widest_of(processor);
  const auto before = static_cast<Vectors>(static_cast<int>(widest) - 1);
  return fmt::format("warning: {} kernels do not use this processor's {}: {}", kernels,
                     to_string(features_of(widest).without(features_of(before))), cure);
}

/// Instructions that wider kernels, or ones of fewer bits, would use.
Features unused_of(const Processor& processor, Vectors used) {
  constexpr Features kOfProducts(Feature::avx, Feature::fma, Feature::avx2, Feature::avx512,
                                 Feature::avx512_bf16, Feature::avx512_fp16, Feature::amx);
  const Features others = processor.features.without(kOfProducts);
  return processor.features.without(others).without(features_of(used));
}

}  // namespace

std::string_view widest_kernels(const Processor& processor, std::string_view own) {
  const std::vector<std::string_view> names = chosen_for(processor);
  if (names.empty()) return {};
  const KernelsRow* const row = row_of(own);
  if (row == nullptr) return own.empty() ? names.front() : own;
  return row->vectors < widest_of(processor) ? names.front() : own;
}

bool are_narrow(std::string_view kernels, const Processor& processor) {
  const KernelsRow* const row = row_of(kernels);
  return row != nullptr && row->vectors < widest_of(processor);
}

Features needed_by(std::string_view kernels) {
  const KernelsRow* const row = row_of(kernels);
  return row == nullptr ? Features() : needed_by(*row);
}

std::string GemmLibrary::label() const {
  return fmt::format("{} {} with {} kernels{}{}", name, version, kernels,
                     bf16.empty() ? "" : ", of bf16 by ", bf16);
}

std::vector<std::string> GemmLibrary::notes() const {
  std::string line = "products by " + label();
  if (!unused.empty()) {
    line += fmt::format("; not used of this processor: {}", to_string(unused));
  }
  std::vector<std::string> lines = {line};
  lines.insert(lines.end(), warnings.begin(), warnings.end());
  if (!problem.empty()) lines.push_back(problem);
  return lines;
}

const GemmLibrary& gemm_library() {
  static const GemmLibrary library = [] {
    const char* const asked = std::getenv("OPENBLAS_CORETYPE");
    GemmLibrary made = choose_kernels(this_processor(), asked == nullptr ? "" : asked);
    const Bf16Library& bf16 = bf16_library();
    if (bf16.used) {
      made.bf16 = "oneDNN " + bf16.version;
      made.unused = made.unused.without(kBf16Products);
    }
    if (!bf16.warning.empty()) made.warnings.push_back(bf16.warning);
    return made;
  }();
  return library;
}

#ifdef SHARDWISE_CBLAS

namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

/// "0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH …".
std::string version_of_openblas() {
  std::istringstream words(openblas_get_config());
  std::string name;
  std::string version;
  words >> name >> version;
  return version;
}

/// Why kernels that a user asked for cannot be used; empty where they can, and are then.
std::string problem_of(const Processor& processor, const std::string& asked) {
  const KernelsRow* const row = row_of(asked);
  std::string why;
  if (row != nullptr && !runs(processor, *row)) {
    why = fmt::format("this processor has no {}",
                      to_string(needed_by(*row).without(processor.features)));
  } else if (!use_kernels(asked)) {
    why = fmt::format("OpenBLAS {} has no such kernels", version_of_openblas());
  } else {
    return "";
  }
  std::vector<std::string_view> can;
  for (const KernelsRow& each : kRows) {
    if (runs(processor, each) && use_kernels(std::string(each.name))) can.push_back(each.name);
  }
  return fmt::format("{}={}: {}; use one of {}", kVariable, shown(asked), why,
                     fmt::join(can, ", "));
}

}  // namespace

bool use_kernels(const std::string& name) {
  if (same_name(openblas_get_corename(), name)) return true;
  if (gotoblas_dynamic_quit == nullptr || gotoblas_dynamic_init == nullptr) return false;
  const char* const asked = std::getenv(kVariable);
  const std::optional<std::string> before =
      asked == nullptr ? std::nullopt : std::optional<std::string>(asked);
  setenv(kVariable, name.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  // What this process starts chooses for itself.
  if (before) {
    setenv(kVariable, before->c_str(), 1);
  } else {
    unsetenv(kVariable);
  }
  return same_name(openblas_get_corename(), name);
}

GemmLibrary choose_kernels(const Processor& processor, std::string_view asked) {
  GemmLibrary library;
  library.name = "OpenBLAS";
  library.version = version_of_openblas();
  if (!asked.empty()) library.problem = problem_of(processor, std::string(asked));
  if (asked.empty() || !library.problem.empty()) {
    const std::string own = openblas_get_corename();
    std::vector<std::string_view> names = chosen_for(processor);
    const std::string_view widest = widest_kernels(processor, own);
    if (widest == own || widest.empty()) names = {};
    for (const std::string_view name : names) {
      if (use_kernels(std::string(name))) break;
    }
  }
  library.kernels = openblas_get_corename();
  const KernelsRow* const row = row_of(library.kernels);
  library.unused = unused_of(processor, row == nullptr ? widest_of(processor) : row->vectors);
  if (are_narrow(library.kernels, processor)) {
    library.warnings.push_back(warning_of(
        library.kernels, processor,
        asked.empty() ? "install a later OpenBLAS, built for all processors (DYNAMIC_ARCH)"
                      : "unset OPENBLAS_CORETYPE"));
  }
  return library;
}

#else

bool use_kernels(const std::string&) { return false; }

GemmLibrary choose_kernels(const Processor& processor, std::string_view) {
#if defined(__AVX512F__)
  constexpr Vectors kVectors = Vectors::avx512;
#elif defined(__AVX2__) && defined(__FMA__)
  constexpr Vectors kVectors = Vectors::avx2;
#elif defined(__AVX__)
  constexpr Vectors kVectors = Vectors::avx;
#else
  constexpr Vectors kVectors = Vectors::sse3;
#endif
  GemmLibrary library;
  library.name = "Eigen";
  library.version =
      fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
  library.kernels = Eigen::SimdInstructionSetsInUse();
  library.unused = unused_of(processor, kVectors);
  if (kVectors < Vectors::avx && widest_of(processor) >= Vectors::avx) {
    library.warnings.push_back(
        warning_of(library.kernels, processor, "build with OpenBLAS (libopenblas-dev)"));
  }
  return library;
}

#endif

}  // namespace shardwise::exec
