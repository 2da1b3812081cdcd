#include "tests/support/host_cuda/fake_cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "tests/support/host_cuda/fake_product.h"

namespace fake_cublaslt {
namespace {

using shardwise::exec::CublasLtCalls;
using shardwise::exec::CublasLtLibrary;

struct Failure {
  int calls_left = 0;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
};

struct State {
  CublasLtCalls real;
  std::map<std::string, Failure> failures;
  std::map<std::string, int> counts;
  bool failed = false;
  std::map<std::string, int> live;
  std::vector<std::string> complaints;
  std::map<std::uint32_t, cublasStatus_t> refused;
  std::map<int, cublasStatus_t> refused_algorithms;
  std::vector<Ran> ran;
  Enqueue enqueue;
};
State& state() {
  static State only;
  return only;
}
/// Of the state. Every call holds it from its begin to its end: ranks are threads of one process.
std::mutex& calls_mutex() {
  static std::mutex only;
  return only;
}
std::vector<std::string>& all_names() {
  static std::vector<std::string> only;
  return only;
}

cublasStatus_t complain(const std::string& line) {
  state().complaints.push_back(line);
  return CUBLAS_STATUS_INVALID_VALUE;
}

/// What is in an algorithm of ours.
struct Algorithm8 {
  std::uint64_t mark = 0;
  std::uint64_t id = 0;
  std::uint64_t workspace = 0;
  std::uint64_t product = 0;  // hash
  std::uint32_t a = 1;        // alignments that it counts on
  std::uint32_t b = 1;
  std::uint32_t c = 1;
  std::uint32_t d = 1;
  std::uint64_t unused[2] = {};
};
static_assert(sizeof(Algorithm8) == sizeof(cublasLtMatmulAlgo_t));
constexpr std::uint64_t kMark = 0x5a7d315e;

std::uint64_t hash_of(const Said& s) {
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&](auto value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U;
  };
  for (const Matrix& m : {s.a, s.b, s.c, s.d}) {
    add(m.type);
    add(m.rows);
    add(m.columns);
    add(m.stride);
  }
  add(s.a_op);
  add(s.b_op);
  add(s.epilogue);
  return hash;
}

cublasStatus_t create(cublasLtHandle_t* handle) {
  static int one = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t /*handle*/) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t heuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t product,
                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t preference, int most,
                         cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = 0;
  const Said said = read(state().real, product, a, b, c, d);
  if (const std::string wrong = wrong_with(said); !wrong.empty()) return complain(wrong);
  const auto refusal = state().refused.find(said.epilogue);
  if (refusal != state().refused.end()) {
    return refusal->second;
  }
  Algorithm8 algorithm;
  algorithm.mark = kMark;
  algorithm.product = hash_of(said);
  std::size_t written = 0;
  const auto get = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto& value) {
    state().real.preference_get(preference, attribute, &value, sizeof(value), &written);
  };
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, algorithm.a);
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, algorithm.b);
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, algorithm.c);
  get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, algorithm.d);
  std::uint64_t workspace = 0;
  get(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  for (const Algorithm id : {kUnordered, kPlain, kSplit}) {
    algorithm.id = id;
    algorithm.workspace = id == kSplit ? kSplitWorkspace : 0;
    if (*count == most || algorithm.workspace > workspace) continue;
    cublasLtMatmulHeuristicResult_t& result = found[(*count)++];
    result = {};
    result.algo = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
    result.workspaceSize = algorithm.workspace;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t algorithm_check(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t product,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               const cublasLtMatmulAlgo_t* algo,
                               cublasLtMatmulHeuristicResult_t* result) {
  const auto algorithm = std::bit_cast<Algorithm8>(*algo);
  if (algorithm.mark != kMark ||
      algorithm.product != hash_of(read(state().real, product, a, b, c, d))) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  result->workspaceSize = algorithm.workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t algorithm_get(const cublasLtMatmulAlgo_t* algo,
                             cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                             std::size_t bytes, std::size_t* written) {
  const std::uint64_t id = std::bit_cast<Algorithm8>(*algo).id;
  if (bytes != sizeof(std::uint32_t)) return complain("a configuration is 4 bytes");
  auto& said = *static_cast<std::uint32_t*>(value);
  *written = bytes;
  if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) {
    said = id == kPlain ? 1 : 2;
  } else {
    said = id == kPlain   ? CUBLASLT_REDUCTION_SCHEME_NONE
           : id == kSplit ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                          : CUBLASLT_REDUCTION_SCHEME_INPLACE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

bool divides(std::uint64_t alignment, const void* at) {
  return at != nullptr && alignment != 0 && reinterpret_cast<std::uintptr_t>(at) % alignment == 0;
}

cublasStatus_t matmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t product, const void* alpha,
                      const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t bytes,
                      cudaStream_t stream) {
  const Said said = read(state().real, product, a_layout, b_layout, c_layout, d_layout);
  if (const std::string wrong = wrong_with(said); !wrong.empty()) return complain(wrong);
  const auto algorithm = std::bit_cast<Algorithm8>(*algo);
  if (algorithm.mark != kMark || algorithm.product != hash_of(said)) {
    return complain("the algorithm is of another product");
  }
  if (!divides(algorithm.a, a) || !divides(algorithm.b, b) || !divides(algorithm.c, c) ||
      !divides(algorithm.d, d)) {
    return complain("an operand is not aligned as the heuristics were told");
  }
  if (algorithm.workspace > bytes || (algorithm.workspace > 0 && !divides(256, workspace))) {
    return complain("the workspace is too small or misaligned");
  }
  const int id = static_cast<int>(algorithm.id);
  if (const auto found = state().refused_algorithms.find(id);
      found != state().refused_algorithms.end()) {
    return found->second;
  }
  state().ran.push_back({id, static_cast<cublasLtEpilogue_t>(said.epilogue), said.d.stride});
  const Operands operands = {
      a, b, c, d, *static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
  const int parts = algorithm.id == kPlain ? 1 : 2;
  auto work = [said, operands, parts] { multiply(said, operands, parts); };
  if (state().enqueue) {
    state().enqueue(stream, "cublasLtMatmul", std::move(work));
  } else {
    work();
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// A call that is counted and may fail, in front of its function.
template <auto kMember, class Function>
struct Hook;
template <auto kMember, class... A>
struct Hook<kMember, cublasStatus_t (*)(A...)> {
  static inline std::string name;
  static inline cublasStatus_t (*function)(A...) = nullptr;
  static cublasStatus_t call(A... arguments) {
    const std::lock_guard<std::mutex> lock(calls_mutex());
    ++state().counts[name];
    const bool gives_back = name.ends_with("Destroy");
    const auto found = state().failures.find(name);
    if (found != state().failures.end() && found->second.calls_left-- == 0) {
      const cublasStatus_t status = found->second.status;
      state().failures.erase(found);
      state().failed = true;
      if (gives_back) static_cast<void>(done(arguments...));
      return status;
    }
    return done(arguments...);
  }
  static cublasStatus_t done(A... arguments) {
    const cublasStatus_t status = function(arguments...);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (name.ends_with("Create")) ++state().live[name.substr(0, name.size() - 6)];
    if (name.ends_with("Destroy")) --state().live[name.substr(0, name.size() - 7)];
    return status;
  }
};

template <auto kMember>
void hook(CublasLtCalls& calls, const char* name) {
  using Function = std::remove_reference_t<decltype(calls.*kMember)>;
  using Its = Hook<kMember, Function>;
  Its::name = name;
  Its::function = calls.*kMember;
  calls.*kMember = Its::call;
  all_names().emplace_back(name);
}

}  // namespace

CublasLtLibrary reset() {
  const CublasLtLibrary library = CublasLtLibrary::open();
  state() = {};
  all_names().clear();
  CublasLtCalls calls = library.calls();
  state().real = calls;
  calls.create = create;
  calls.destroy = destroy;
  calls.heuristic = heuristic;
  calls.algorithm_check = algorithm_check;
  calls.algorithm_get = algorithm_get;
  calls.multiply = matmul;
  hook<&CublasLtCalls::create>(calls, "cublasLtCreate");
  hook<&CublasLtCalls::destroy>(calls, "cublasLtDestroy");
  hook<&CublasLtCalls::product_create>(calls, "cublasLtMatmulDescCreate");
  hook<&CublasLtCalls::product_destroy>(calls, "cublasLtMatmulDescDestroy");
  hook<&CublasLtCalls::product_set>(calls, "cublasLtMatmulDescSetAttribute");
  hook<&CublasLtCalls::layout_create>(calls, "cublasLtMatrixLayoutCreate");
  hook<&CublasLtCalls::layout_destroy>(calls, "cublasLtMatrixLayoutDestroy");
  hook<&CublasLtCalls::preference_create>(calls, "cublasLtMatmulPreferenceCreate");
  hook<&CublasLtCalls::preference_destroy>(calls, "cublasLtMatmulPreferenceDestroy");
  hook<&CublasLtCalls::preference_set>(calls, "cublasLtMatmulPreferenceSetAttribute");
  hook<&CublasLtCalls::heuristic>(calls, "cublasLtMatmulAlgoGetHeuristic");
  hook<&CublasLtCalls::algorithm_get>(calls, "cublasLtMatmulAlgoConfigGetAttribute");
  hook<&CublasLtCalls::multiply>(calls, "cublasLtMatmul");
  return {calls, "fake"};
}

void fail(const std::string& call, int nth, cublasStatus_t status) {
  state().failures[call] = {nth, status};
}
std::vector<std::string> names() { return all_names(); }
bool has_failed() { return state().failed; }
std::map<std::string, int> calls() { return state().counts; }
std::vector<std::string> complaints() { return state().complaints; }
std::string left_over() {
  std::string left;
  for (const auto& [name, count] : state().live) {
    if (count != 0) left += fmt::format("{} {}\n", count, name);
  }
  return left;
}
void refuse(cublasLtEpilogue_t epilogue, cublasStatus_t status) {
  state().refused[epilogue] = status;
}
void refuse_algorithm(int algorithm, cublasStatus_t status) {
  state().refused_algorithms[algorithm] = status;
}
std::vector<Ran> ran() { return state().ran; }
void set_enqueue(Enqueue enqueue) { state().enqueue = std::move(enqueue); }

}  // namespace fake_cublaslt
