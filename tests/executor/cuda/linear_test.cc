// Every product of layers by cuBLASLt's descriptors gives what the CPU's kernels give.
#include <fmt/format.h>

#include <limits>

#include "tests/executor/cuda/linear_on_fake.h"

namespace shardwise::exec::test {
namespace {

constexpr float kPoisonedElement = std::numeric_limits<float>::quiet_NaN();

struct LinearCase {
  DType dtype = DType::fp32;
  DType gradient = DType::fp32;
  bool transposed = false;
  bool bias = false;
  bool adds = false;
  std::optional<Gelu> gelu = std::nullopt;
  std::int64_t rows = 5;
  std::int64_t in = 24;
  std::int64_t out = 16;
  std::int64_t wider = 0;   // elements that rows of x and y have besides
  std::int64_t offset = 0;  // elements before each tensor

  LinearShape shape() const { return {rows, in, out, in + wider, out + wider, transposed}; }
  std::string text() const {
    return fmt::format("{} {} rows {} in {} out {} wider {} offset {}{}{}{}{}",
                       dtype == DType::fp32 ? "fp32" : "bf16",
                       gradient == DType::fp32 ? "fp32" : "bf16", rows, in, out, wider, offset,
                       transposed ? " transposed" : "", bias ? " bias" : "", adds ? " adds" : "",
                       !gelu                 ? ""
                       : *gelu == Gelu::tanh ? " tanh"
                                             : " erf");
  }
};

std::vector<LinearCase> all_cases() {
  std::vector<LinearCase> cases;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (int bits = 0; bits < 8; ++bits) {
      LinearCase c = {dtype, DType::fp32, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
      cases.push_back(c);
      for (const Gelu gelu : {Gelu::tanh, Gelu::erf}) {
        c.gelu = gelu;
        cases.push_back(c);
        LinearCase ragged = c;
        ragged.in = 7;
        ragged.out = 11;
        ragged.rows = 13;
        ragged.offset = 1;
        cases.push_back(ragged);
      }
      c.gelu.reset();
      LinearCase square = c;  // no shape says which side is which
      square.rows = square.in = square.out = 16;
      cases.push_back(square);
      c.wider = 8;
      cases.push_back(c);
      LinearCase cut = c;  // where 16-bit types are multiplied in two parts
      cut.out = 259;
      cut.in = 261;
      cut.wider = 5;
      cases.push_back(cut);
      c.wider = 3;
      c.offset = 3;
      c.gradient = dtype;
      cases.push_back(c);
    }
  }
  return cases;
}

/// Within the bound: fp32 1e-5 of the sum of magnitudes; bf16 besides the roundings, each half a
/// unit of its last place: ours and the CPU's, which has two where a bias is added before the
/// product.
void expect_near_magnitudes(const Floats& actual, const Floats& expected, const Floats& magnitudes,
                            DType stored, const std::string& text) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {  // between the columns
      ASSERT_TRUE(std::isnan(actual[i])) << text << " at " << i;
      continue;
    }
    double bound = 1e-5 * static_cast<double>(magnitudes[i]) + 1e-6;
    if (stored == DType::bf16) bound += 3 * static_cast<double>(magnitudes[i]) / 256;
    ASSERT_NEAR(actual[i], expected[i], bound) << text << " at " << i;
  }
}

Floats magnitudes_of(const Floats& x) {
  Floats result;
  for (const float each : x) result.push_back(std::abs(each));
  return result;
}

class CudaLinearOf : public LinearOnFake {
 protected:
  void SetUp() override {
    LinearOnFake::SetUp();
    if (!library_) return;
    plans_ = std::make_unique<GemmPlans>(*library_, options_);
    linear_ = std::make_unique<CudaLinear>(*plans_, passes_);
  }
  void TearDown() override {
    linear_.reset();
    plans_.reset();
    LinearOnFake::TearDown();
  }

  /// Rows of `width` with `wider` poisoned elements after each.
  static Floats rows_of(std::int64_t rows, std::int64_t width, std::int64_t wider, unsigned seed,
                        bool poisoned = false) {
    const Floats drawn = random_floats(rows * width, seed);
    Floats result;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < width; ++i) {
        result.push_back(poisoned ? kPoisonedElement
                                  : drawn[static_cast<std::size_t>(r * width + i)]);
      }
      result.insert(result.end(), static_cast<std::size_t>(wider), kPoisonedElement);
    }
    return result;
  }

  void forward(const LinearCase& c) {
    const auto run = [&](DType dtype, bool device, bool magnitude) {
      const auto of = [&](const Floats& values) {
        return Tensor(dtype, magnitude ? magnitudes_of(values) : values, c.offset);
      };
      const Tensor x = of(rows_of(c.rows, c.in, c.wider, 1));
      const Tensor weight = of(random_floats(c.in * c.out, 2));
      const Tensor bias = of(random_floats(c.out, 3));
      const Tensor y = of(rows_of(c.rows, c.out, c.wider, 4, !c.adds));
      const Tensor activated = of(rows_of(c.rows, c.out, 0, 5, true));
      const LinearWork work = {.shape = c.shape(),
                               .dtype = dtype,
                               .x = x.at(),
                               .weight = weight.at(),
                               .bias = c.bias ? bias.at() : nullptr,
                               .y = y.at(),
                               .adds = c.adds,
                               .gelu = magnitude ? std::nullopt : c.gelu,
                               .activated = activated.at()};
      if (device) {
        linear_->forward(work, workspace_, nullptr);
      } else {
        cpu_.linear(work, stream_);
      }
      return std::pair(y.values(), activated.values());
    };
    const auto actual = run(c.dtype, true, false);
    const auto expected = run(c.dtype, false, false);
    const Floats magnitudes = run(DType::fp32, false, true).first;
    expect_near_magnitudes(actual.first, expected.first, magnitudes, c.dtype, c.text());
    if (c.gelu) {
      Floats twice = magnitudes;  // |gelu'| < 1.13, and a rounding of its own
      for (float& each : twice) each *= 2;
      expect_near_magnitudes(actual.second, expected.second, twice, c.dtype,
                             c.text() + " activated");
    }
  }

  void backward_input(const LinearCase& c) {
    const auto run = [&](DType dtype, bool device, bool magnitude) {
      const auto of = [&](const Floats& values) {
        return Tensor(dtype, magnitude ? magnitudes_of(values) : values, c.offset);
      };
      const Tensor d_y = of(rows_of(c.rows, c.out, c.wider, 1));
      const Tensor weight = of(random_floats(c.in * c.out, 2));
      const Tensor d_x = of(rows_of(c.rows, c.in, c.wider, 3, !c.adds));
      const Tensor before = of(random_floats(c.rows * c.in, 4));
      const LinearBackwardInputWork work = {.shape = c.shape(),
                                            .dtype = dtype,
                                            .d_y = d_y.at(),
                                            .weight = weight.at(),
                                            .d_x = d_x.at(),
                                            .adds = c.adds,
                                            .gelu = magnitude ? std::nullopt : c.gelu,
                                            .before = before.at()};
      if (device) {
        linear_->backward_input(work, workspace_, nullptr);
      } else {
        cpu_.linear_backward_input(work, stream_);
      }
      return d_x.values();
    };
    Floats magnitudes = run(DType::fp32, false, true);
    for (float& each : magnitudes) each *= c.gelu ? 2.0F : 1.0F;
    expect_near_magnitudes(run(c.dtype, true, false), run(c.dtype, false, false), magnitudes,
                           c.dtype, c.text());
  }

  void backward_weight(const LinearCase& c) {
    const auto run = [&](DType dtype, DType gradient, bool device, bool magnitude) {
      const auto of = [&](DType type, const Floats& values) {
        return Tensor(type, magnitude ? magnitudes_of(values) : values, c.offset);
      };
      const Tensor x = of(dtype, rows_of(c.rows, c.in, c.wider, 1));
      const Tensor d_y = of(dtype, rows_of(c.rows, c.out, c.wider, 2));
      const Tensor d_weight = of(gradient, random_floats(c.in * c.out, 3));
      const Tensor d_bias = of(gradient, random_floats(c.out, 4));
      const LinearBackwardWeightWork work = {.shape = c.shape(),
                                             .dtype = dtype,
                                             .gradient = gradient,
                                             .x = x.at(),
                                             .d_y = d_y.at(),
                                             .d_weight = c.adds ? nullptr : d_weight.at(),
                                             .d_bias = c.bias ? d_bias.at() : nullptr};
      if (device) {
        linear_->backward_weight(work, workspace_, nullptr);
      } else {
        cpu_.linear_backward_weight(work, stream_);
      }
      return std::pair(d_weight.values(), d_bias.values());
    };
    const auto actual = run(c.dtype, c.gradient, true, false);
    const auto expected = run(c.dtype, c.gradient, false, false);
    const auto magnitudes = run(DType::fp32, DType::fp32, false, true);
    expect_near_magnitudes(actual.first, expected.first, magnitudes.first, c.gradient, c.text());
    expect_near_magnitudes(actual.second, expected.second, magnitudes.second, c.gradient,
                           c.text() + " bias");
  }

  Workers workers_{1};
  CpuCompute cpu_{workers_};
  DeviceStream stream_;
  CpuPasses passes_;
  std::unique_ptr<GemmPlans> plans_;
  std::unique_ptr<CudaLinear> linear_;
};

TEST_F(CudaLinearOf, ForwardGivesWhatTheCpuGives) {
  for (const LinearCase& each : all_cases()) forward(each);
}

TEST_F(CudaLinearOf, InputGradientIsWhatTheCpuGives) {
  for (const LinearCase& each : all_cases()) backward_input(each);
}

TEST_F(CudaLinearOf, WeightGradientIsAddedAsOnTheCpu) {
  for (const LinearCase& each : all_cases()) backward_weight(each);
}

TEST_F(CudaLinearOf, AWrongTranspositionOfASquareWeightIsFound) {
  const std::int64_t n = 16;
  const Tensor x(DType::bf16, random_floats(n * n, 1));
  const Tensor weight(DType::bf16, random_floats(n * n, 2));
  const auto product = [&](bool transposed, auto run) {
    const Tensor y(DType::bf16, Floats(n * n, kPoisonedElement));
    run(LinearWork{.shape = {n, n, n, n, n, transposed},
                   .dtype = DType::bf16,
                   .x = x.at(),
                   .weight = weight.at(),
                   .y = y.at()});
    return y.values();
  };
  const auto on_device = [&](const LinearWork& w) { linear_->forward(w, workspace_, nullptr); };
  const auto on_cpu = [&](const LinearWork& w) { cpu_.linear(w, stream_); };
  for (const bool transposed : {false, true}) {
    const Floats expected = product(transposed, on_cpu);
    const Floats wrong = product(!transposed, on_device);
    const Floats right = product(transposed, on_device);
    double found = 0;
    double left = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      found = std::max(found, std::abs(static_cast<double>(wrong[i]) - expected[i]));
      left = std::max(left, std::abs(static_cast<double>(right[i]) - expected[i]));
    }
    EXPECT_GT(found, 1);
    EXPECT_LT(left, 0.05);
  }
}

TEST_F(CudaLinearOf, ProductsAreRightWithoutAnyEpilogue) {
  for (const auto epilogue :
       {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
        CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
    fake_cublaslt::refuse(epilogue);
  }
  for (const LinearCase& each : all_cases()) {
    forward(each);
    backward_input(each);
    backward_weight(each);
  }
}

TEST_F(CudaLinearOf, AProductOfWholeVectorsNeedsNoPassButTheAdditionOfBiasSums) {
  LinearCase c = {DType::bf16, DType::fp32, true, true, false, Gelu::tanh};
  forward(c);
  backward_input(c);
  EXPECT_EQ(passes_.issued, 0);
  backward_weight(c);
  EXPECT_EQ(passes_.issued, 1);
  c.gradient = DType::bf16;
  backward_weight(c);
  EXPECT_EQ(passes_.issued, 2);
  std::vector<cublasLtEpilogue_t> epilogues;
  for (const fake_cublaslt::Ran& each : fake_cublaslt::ran()) epilogues.push_back(each.epilogue);
  EXPECT_EQ(epilogues, (std::vector{CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
                                    CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADA}));
}

/// A clock of which products with an epilogue take 3 us, others 2 us, and a pass what it is told.
class EpilogueClock final : public KernelClock {
 public:
  EpilogueClock(const CpuPasses& passes, double pass) : passes_(passes), pass_(pass) {}
  cudaStream_t stream() const override { return nullptr; }
  void fill(std::span<std::byte> memory, DType /*dtype*/) override {
    std::fill(memory.begin(), memory.end(), std::byte{0});
  }
  double seconds(const std::function<void()>& issue) override {
    const int before = passes_.issued;
    issue();
    ++timed;
    const bool plain = fake_cublaslt::ran().back().epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    return (plain ? 2e-6 : 3e-6) + (passes_.issued > before ? pass_ : 0);
  }
  int timed = 0;

 private:
  const CpuPasses& passes_;
  double pass_;
};

TEST_F(CudaLinearOf, ABiasGradientIsSummedByWhatWasTimedToBeFaster) {
  const LinearCase c = {DType::bf16, DType::fp32, true, true};
  const Tensor x(c.dtype, random_floats(c.rows * c.in, 1));
  const Tensor d_y(c.dtype, random_floats(c.rows * c.out, 2));
  const Tensor d_weight(c.gradient, random_floats(c.in * c.out, 3));
  const Tensor d_bias(c.gradient, random_floats(c.out, 4));
  const LinearBackwardWeightWork work = {.shape = c.shape(),
                                         .dtype = c.dtype,
                                         .gradient = c.gradient,
                                         .x = x.at(),
                                         .d_y = d_y.at(),
                                         .d_weight = d_weight.at(),
                                         .d_bias = d_bias.at()};
  const auto bytes = static_cast<std::size_t>(options_.workspace_bytes);
  for (const double pass : {0.5e-6, 1.5e-6}) {
    linear_.reset();
    plans_ = std::make_unique<GemmPlans>(*library_, options_);
    linear_ = std::make_unique<CudaLinear>(*plans_, passes_);
    EpilogueClock clock(passes_, pass);
    KernelTuning tuning = {.clock = clock, .workspace = {workspace_, bytes}};
    linear_->prepare(work, tuning);
    EXPECT_EQ(tuning.timed.size(), 2U);
    const bool apart = pass < 1e-6;
    const auto expected = apart ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BGRADA;
    backward_weight(c);
    EXPECT_EQ(fake_cublaslt::ran().back().epilogue, expected);

    // A later run that has it from a file times nothing and chooses the same.
    KernelChoices kept;
    linear_->add_to(kept);
    const KernelMachine machine = {"a GPU", 13000, 130100, 0};
    const ReadKernelChoices read = parse_kernel_choices(to_json(machine, kept), "kept", machine);
    EXPECT_EQ(read.ignored, "");
    linear_.reset();
    plans_ = std::make_unique<GemmPlans>(*library_, options_);
    linear_ = std::make_unique<CudaLinear>(*plans_, passes_);
    linear_->take(read.choices);
    EpilogueClock later(passes_, pass);
    KernelTuning again = {.clock = later, .workspace = {workspace_, bytes}};
    linear_->prepare(work, again);
    EXPECT_EQ(later.timed, 0);
    EXPECT_EQ(again.kept.size(), 2U);
    backward_weight(c);
    EXPECT_EQ(fake_cublaslt::ran().back().epilogue, expected);
  }
}

}  // namespace
}  // namespace shardwise::exec::test
