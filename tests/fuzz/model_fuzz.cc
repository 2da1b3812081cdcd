// A Hugging Face config.json either becomes a model whose counts hang together or is refused.

#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::optional<JsonValue> value = parse_input(data, size);
  if (!value) return 0;
  const auto model =
      read_input(*value, [](const JsonValue& v) { return read_model(v, "fuzz.json", "fuzz"); });
  if (!model) return 0;

  const std::int64_t total = model->parameter_count();
  SHARDWISE_CHECK(total > 0, std::to_string(total));
  const ParameterCounts counts = count_parameters(*model);
  SHARDWISE_CHECK(counts.active > 0 && counts.active <= total, std::to_string(counts.active));
  SHARDWISE_CHECK(counts.total == total, std::to_string(counts.total));
  SHARDWISE_CHECK(counts.vocabulary + counts.positions <= counts.main_model(),
                  std::to_string(counts.main_model()));
  SHARDWISE_CHECK(!model->layers.empty(), model->model_type);
  for (const int kind : model->layers) {
    SHARDWISE_CHECK(kind >= 0 && static_cast<std::size_t>(kind) < model->kinds.size(),
                    std::to_string(kind));
  }
  for (const LayerSpec& kind : model->kinds) {
    for (const ParameterSpec& parameter : kind.parameters) {
      SHARDWISE_CHECK(parameter.elements() > 0, kind.name + " " + parameter.name);
    }
    for (const OperationSpec& op : kind.operations) {
      SHARDWISE_CHECK(op.width > 0, kind.name + " " + op.name);
      if (op.kind == OpKind::gemm) SHARDWISE_CHECK(op.k > 0, kind.name + " " + op.name);
    }
  }
  return 0;
}
