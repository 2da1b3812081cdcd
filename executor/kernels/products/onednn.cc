#include "executor/kernels/products/onednn.h"

#include <fmt/format.h>

#include <cstdlib>
#include <type_traits>

#ifdef SHARDWISE_ONEDNN
#include <dlfcn.h>
#include <dnnl.h>

#include <array>
#include <compare>
#include <map>
#include <memory>
#endif

namespace shardwise::exec {

bool multiplies_bf16(const Processor& processor) {
  return !processor.features.without(processor.features.without(kBf16Products)).empty();
}

namespace {

std::string not_used(const std::string& why) {
  const Features features = this_processor().features;
  return fmt::format("warning: products of bf16 do not use this processor's {}: {}",
                     to_string(features.without(features.without(kBf16Products))), why);
}

}  // namespace

#ifdef SHARDWISE_ONEDNN

namespace {

constexpr const char* kFile = "libdnnl.so.2";

/// oneDNN's functions, by their names in its library.
struct Calls {
  decltype(&dnnl_version) version = nullptr;
  decltype(&dnnl_get_effective_cpu_isa) get_effective_cpu_isa = nullptr;
  decltype(&dnnl_engine_create) engine_create = nullptr;
  decltype(&dnnl_stream_create) stream_create = nullptr;
  decltype(&dnnl_stream_destroy) stream_destroy = nullptr;
  decltype(&dnnl_memory_desc_init_by_strides) memory_desc_init_by_strides = nullptr;
  decltype(&dnnl_memory_create) memory_create = nullptr;
  decltype(&dnnl_memory_destroy) memory_destroy = nullptr;
  decltype(&dnnl_memory_set_data_handle) memory_set_data_handle = nullptr;
  decltype(&dnnl_matmul_desc_init) matmul_desc_init = nullptr;
  decltype(&dnnl_primitive_attr_create) primitive_attr_create = nullptr;
  decltype(&dnnl_primitive_attr_destroy) primitive_attr_destroy = nullptr;
  decltype(&dnnl_primitive_attr_set_post_ops) primitive_attr_set_post_ops = nullptr;
  decltype(&dnnl_post_ops_create) post_ops_create = nullptr;
  decltype(&dnnl_post_ops_destroy) post_ops_destroy = nullptr;
  decltype(&dnnl_post_ops_append_sum) post_ops_append_sum = nullptr;
  decltype(&dnnl_primitive_desc_create) primitive_desc_create = nullptr;
  decltype(&dnnl_primitive_desc_destroy) primitive_desc_destroy = nullptr;
  decltype(&dnnl_primitive_create) primitive_create = nullptr;
  decltype(&dnnl_primitive_destroy) primitive_destroy = nullptr;
  decltype(&dnnl_primitive_execute) primitive_execute = nullptr;
  /// OpenMP's, for the calling thread: the library computes on as many threads as this allows.
  void (*set_num_threads)(int) = nullptr;
};

struct Opened {
  Bf16Library library;
  Calls calls;
  dnnl_engine_t engine = nullptr;  // of the process, to its end
};

template <class F>
bool find(void* library, const char* name, F& call) {
  call = reinterpret_cast<F>(::dlsym(library, name));
  return call != nullptr;
}

bool find_all(void* library, Calls& calls) {
  return find(library, "dnnl_version", calls.version) &&
         find(library, "dnnl_get_effective_cpu_isa", calls.get_effective_cpu_isa) &&
         find(library, "dnnl_engine_create", calls.engine_create) &&
         find(library, "dnnl_stream_create", calls.stream_create) &&
         find(library, "dnnl_stream_destroy", calls.stream_destroy) &&
         find(library, "dnnl_memory_desc_init_by_strides", calls.memory_desc_init_by_strides) &&
         find(library, "dnnl_memory_create", calls.memory_create) &&
         find(library, "dnnl_memory_destroy", calls.memory_destroy) &&
         find(library, "dnnl_memory_set_data_handle", calls.memory_set_data_handle) &&
         find(library, "dnnl_matmul_desc_init", calls.matmul_desc_init) &&
         find(library, "dnnl_primitive_attr_create", calls.primitive_attr_create) &&
         find(library, "dnnl_primitive_attr_destroy", calls.primitive_attr_destroy) &&
         find(library, "dnnl_primitive_attr_set_post_ops", calls.primitive_attr_set_post_ops) &&
         find(library, "dnnl_post_ops_create", calls.post_ops_create) &&
         find(library, "dnnl_post_ops_destroy", calls.post_ops_destroy) &&
         find(library, "dnnl_post_ops_append_sum", calls.post_ops_append_sum) &&
         find(library, "dnnl_primitive_desc_create", calls.primitive_desc_create) &&
         find(library, "dnnl_primitive_desc_destroy", calls.primitive_desc_destroy) &&
         find(library, "dnnl_primitive_create", calls.primitive_create) &&
         find(library, "dnnl_primitive_destroy", calls.primitive_destroy) &&
         find(library, "dnnl_primitive_execute", calls.primitive_execute) &&
         find(library, "omp_set_num_threads", calls.set_num_threads);
}

Opened open_library() {
  Opened made;
  if (!multiplies_bf16(this_processor())) return made;
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    made.library.warning = not_used(fmt::format("install oneDNN ({}; Debian's libdnnl2)", kFile));
    return made;
  }
  if (!find_all(library, made.calls)) {
    made.library.warning = not_used(fmt::format("{} is not oneDNN built for OpenMP", kFile));
    return made;
  }
  const auto isa = static_cast<unsigned>(made.calls.get_effective_cpu_isa());
  constexpr auto kNeeded = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
  if ((isa & kNeeded) != kNeeded) {
    made.library.warning = not_used("unset ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA");
    return made;
  }
  if (made.calls.engine_create(&made.engine, dnnl_cpu, 0) != dnnl_success) {
    made.library.warning = not_used("oneDNN does not start on this machine");
    return made;
  }
  const dnnl_version_t& version = *made.calls.version();
  made.library.version = fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
  made.library.used = true;
  return made;
}

const Opened& opened() {
  static const Opened one = open_library();
  return one;
}

/// What a product depends on but the places of its matrices.
struct Key {
  std::array<std::int64_t, 3> extents{};
  std::array<std::int64_t, 3> strides{};
  std::array<bool, 4> kinds{};  // a transposed, b transposed, c in fp32, adds
  auto operator<=>(const Key&) const = default;
};

dnnl_memory_desc_t described(const Calls& calls, std::int64_t rows, std::int64_t columns,
                             std::int64_t stride, bool transposed, dnnl_data_type_t type) {
  const dnnl_dims_t extents = {rows, columns};
  const dnnl_dims_t strides = {transposed ? 1 : stride, transposed ? stride : 1};
  dnnl_memory_desc_t made;
  calls.memory_desc_init_by_strides(&made, 2, extents, type, strides);
  return made;
}

/// A product that is ready to run on the thread that made it.
class Product {
 public:
  Product(const Opened& library, const Key& key) : calls_(library.calls) {
    const auto [m, n, k] = key.extents;
    const auto [a_stride, b_stride, c_stride] = key.strides;
    const auto [a_transposed, b_transposed, wide, adds] = key.kinds;
    const auto a = described(calls_, m, k, a_stride, a_transposed, dnnl_bf16);
    const auto b = described(calls_, k, n, b_stride, b_transposed, dnnl_bf16);
    const auto c = described(calls_, m, n, c_stride, false, wide ? dnnl_f32 : dnnl_bf16);
    if (make(a, b, c, adds, library.engine) && memory(0, a, library.engine) &&
        memory(1, b, library.engine)) {
      memory(2, c, library.engine);
    }
  }
  ~Product() {
    for (dnnl_memory_t each : memory_) {
      if (each != nullptr) calls_.memory_destroy(each);
    }
    if (primitive_ != nullptr) calls_.primitive_destroy(primitive_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  bool run(dnnl_stream_t stream, const void* a, const void* b, void* c) {
    if (memory_[2] == nullptr) return false;
    calls_.memory_set_data_handle(memory_[0], const_cast<void*>(a));
    calls_.memory_set_data_handle(memory_[1], const_cast<void*>(b));
    calls_.memory_set_data_handle(memory_[2], c);
    const std::array<dnnl_exec_arg_t, 3> arguments = {
        {{DNNL_ARG_SRC, memory_[0]}, {DNNL_ARG_WEIGHTS, memory_[1]}, {DNNL_ARG_DST, memory_[2]}}};
    // Streams of processors run what they are given before they return.
    return calls_.primitive_execute(primitive_, stream, 3, arguments.data()) == dnnl_success;
  }

 private:
  bool make(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b, const dnnl_memory_desc_t& c,
            bool adds, dnnl_engine_t engine) {
    dnnl_primitive_attr_t attributes = nullptr;
    dnnl_post_ops_t after = nullptr;
    dnnl_primitive_desc_t description = nullptr;
    dnnl_matmul_desc_t operation;
    const bool made = calls_.primitive_attr_create(&attributes) == dnnl_success &&
                      calls_.post_ops_create(&after) == dnnl_success &&
                      (!adds || calls_.post_ops_append_sum(after, 1.0F) == dnnl_success) &&
                      calls_.primitive_attr_set_post_ops(attributes, after) == dnnl_success &&
                      calls_.matmul_desc_init(&operation, &a, &b, nullptr, &c) == dnnl_success &&
                      calls_.primitive_desc_create(&description, &operation, attributes, engine,
                                                   nullptr) == dnnl_success &&
                      calls_.primitive_create(&primitive_, description) == dnnl_success;
    if (description != nullptr) calls_.primitive_desc_destroy(description);
    if (after != nullptr) calls_.post_ops_destroy(after);
    if (attributes != nullptr) calls_.primitive_attr_destroy(attributes);
    return made;
  }
  bool memory(std::size_t which, const dnnl_memory_desc_t& description, dnnl_engine_t engine) {
    return calls_.memory_create(&memory_[which], &description, engine, DNNL_MEMORY_NONE) ==
           dnnl_success;
  }

  const Calls& calls_;
  dnnl_primitive_t primitive_ = nullptr;
  std::array<dnnl_memory_t, 3> memory_{};  // a, b, c; the last is null where any of it failed
};

/// The products of a thread.
class Products {
 public:
  Products() : library_(opened()) {
    // Threads are ours: each call is of one thread, so that sums do not depend on their number.
    library_.calls.set_num_threads(1);
    library_.calls.stream_create(&stream_, library_.engine, dnnl_stream_default_flags);
  }
  ~Products() {
    if (stream_ != nullptr) library_.calls.stream_destroy(stream_);
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  bool run(const Key& key, const void* a, const void* b, void* c) {
    if (stream_ == nullptr) return false;
    if (products_.size() >= kMost && !products_.contains(key)) products_.clear();
    std::unique_ptr<Product>& product = products_[key];
    if (product == nullptr) product = std::make_unique<Product>(library_, key);
    return product->run(stream_, a, b, c);
  }

 private:
  static constexpr std::size_t kMost = 1024;  // shapes; a step of a model has some fifty

  const Opened& library_;
  dnnl_stream_t stream_ = nullptr;
  std::map<Key, std::unique_ptr<Product>> products_;
};

}  // namespace

const Bf16Library& bf16_library() { return opened().library; }

template <class C>
bool onednn_gemm(const GemmShape& s, MatrixView<const Bf16> a, MatrixView<const Bf16> b,
                 MatrixView<C> c, bool adds) {
  thread_local Products products;
  const Key key = {{s.m, s.n, s.k},
                   {a.stride, b.stride, c.stride},
                   {a.transposed, b.transposed, std::is_same_v<C, float>, adds}};
  return products.run(key, a.data, b.data, c.data);
}

#else

const Bf16Library& bf16_library() {
  static const Bf16Library none = [] {
    Bf16Library made;
    if (multiplies_bf16(this_processor())) {
      made.warning = not_used("build with oneDNN's headers (Debian's libdnnl-dev)");
    }
    return made;
  }();
  return none;
}

template <class C>
bool onednn_gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>, MatrixView<C>,
                 bool) {
  return false;
}

#endif

template bool onednn_gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>,
                          MatrixView<Bf16>, bool);
template bool onednn_gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>,
                          MatrixView<float>, bool);

}  // namespace shardwise::exec
