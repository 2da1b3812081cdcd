#include "simulator/traces/chakra.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise::sim {
namespace {

/// Fields of a message in the order of the bytes, as the encoding's specification has them.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  bool more() const { return !bytes_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.at(0));
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) break;
    }
    return value;
  }
  std::string_view piece() {
    const std::uint64_t size = varint();
    const std::string_view found = bytes_.substr(0, size);
    EXPECT_EQ(found.size(), size);
    bytes_.remove_prefix(found.size());
    return found;
  }

 private:
  std::string_view bytes_;
};

struct Node {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;
  std::uint64_t duration = 0;
  std::vector<std::uint64_t> waits;
  std::map<std::string, std::uint64_t> numbers;
  std::string group;
};

// Tags of et_def.proto's fields, with their kind on the wire.
constexpr std::uint64_t number(std::uint64_t field) { return field << 3; }
constexpr std::uint64_t bytes_of(std::uint64_t field) { return field << 3 | 2; }

/// AttributeProto: a name, and one of its values by type: int32_val, int64_val, bool_val or
/// string_val, as src/feeder/et_feeder_node.cpp reads the attribute of that name.
void add_attribute(Node& node, std::string_view bytes) {
  static const std::map<std::string, std::uint64_t> kTags = {
      {"comm_src", number(7)},  {"comm_dst", number(7)},  {"comm_tag", number(7)},
      {"comm_size", number(9)}, {"comm_type", number(9)}, {"is_cpu_op", number(27)},
      {"pg_name", bytes_of(29)}};
  Fields attribute(bytes);
  EXPECT_EQ(attribute.varint(), bytes_of(1));
  const std::string name(attribute.piece());
  ASSERT_TRUE(kTags.contains(name)) << name;
  ASSERT_EQ(attribute.varint(), kTags.at(name)) << name;
  if (name == "pg_name") {
    node.group = attribute.piece();
  } else {
    node.numbers[name] = attribute.varint();
  }
  EXPECT_FALSE(attribute.more()) << name;
}

Node node_of(std::string_view bytes) {
  Node node;
  for (Fields fields(bytes); fields.more();) {
    const std::uint64_t tag = fields.varint();
    if (tag == number(1)) {
      node.id = fields.varint();
    } else if (tag == bytes_of(2)) {
      node.name = fields.piece();
    } else if (tag == number(3)) {
      node.type = fields.varint();
    } else if (tag == bytes_of(5)) {  // repeated numbers are packed
      for (Fields each(fields.piece()); each.more();) node.waits.push_back(each.varint());
    } else if (tag == number(7)) {
      node.duration = fields.varint();
    } else {
      EXPECT_EQ(tag, bytes_of(10));
      add_attribute(node, fields.piece());
    }
  }
  return node;
}

std::vector<Node> nodes_of(const std::string& bytes) {
  Fields stream(bytes);
  EXPECT_EQ(stream.piece(),
            "\x0a\x05"
            "0.0.4");  // GlobalMetadata
  std::vector<Node> nodes;
  while (stream.more()) nodes.push_back(node_of(stream.piece()));
  return nodes;
}

Plan pipeline_plan() {
  Plan plan;
  plan.model = test::llama(8, 1024, 2816, 8, 8, 32000);
  plan.engine = *find_engine("megatron_ddp");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  plan.layout.tp = 2;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 2;
  plan.layout.zero_stage = 1;
  plan.job.sequence_length = 2048;
  plan.job.global_batch_size = 8;
  return plan;
}

// The encoding's own example: field 1 with the number 150 is 08 96 01.
TEST(ProtoMessage, IsEncodedAsInTheSpecification) {
  ProtoMessage message;
  message.number(1, 150);
  EXPECT_EQ(message.delimited(), "\x03\x08\x96\x01");
  ProtoMessage packed;
  packed.packed(6, {3, 270, 86942});
  EXPECT_EQ(packed.delimited(), "\x08\x32\x06\x03\x8e\x02\x9e\xa7\x05");
}

TEST(Chakra, NodesWaitForEarlierOnesAndTakeAsLongAsTheStreams) {
  const Plan plan = pipeline_plan();
  SimulationOptions options;
  options.granularity = Granularity::kernel;
  const Simulation made = simulate(plan, options);
  ChakraTraces traces(plan, made);
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    const std::vector<Node> nodes = nodes_of(traces.of_rank(rank));
    const auto stage = static_cast<std::size_t>(rank / (plan.layout.world() / 2));
    const StageProgram& program = made.program.stages[stage];
    ASSERT_EQ(nodes.size(), program.operations.size());
    double predicted = 0;
    std::uint64_t written = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_EQ(nodes[i].id, i);
      for (const std::uint64_t wait : nodes[i].waits) EXPECT_LT(wait, i);
      if (program.operations[i].stream != Stream::compute) continue;
      predicted += made.prices[stage][static_cast<std::size_t>(program.operations[i].cost)].seconds;
      written += nodes[i].duration;
    }
    EXPECT_NEAR(static_cast<double>(written), predicted * 1e6, 1);
  }
}

/// CollectiveCommType of et_def.proto.
std::uint64_t comm_type(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
    case CollectiveKind::send_recv:
      break;  // a message, no collective
  }
  return 999;
}

TEST(Chakra, CollectivesHaveTheNumberOfTheirKind) {
  const Plan plan = pipeline_plan();
  const Simulation made = simulate(plan);
  ChakraTraces traces(plan, made);
  const std::vector<Node> nodes = nodes_of(traces.of_rank(0));
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].type != 7) continue;
    const StageProgram& program = made.program.stages[0];
    const OpCost& cost = program.costs[static_cast<std::size_t>(program.operations[i].cost)];
    const std::uint64_t type = nodes[i].numbers.at("comm_type");
    EXPECT_EQ(type, comm_type(cost.collectives.front().kind)) << nodes[i].name;
    EXPECT_GT(nodes[i].numbers.at("comm_size"), 0U) << nodes[i].name;
    seen.insert(type);
  }
  EXPECT_GE(seen.size(), 3U);  // gathers, reductions and sums of the norm
}

// Every rank of a group has the same collectives in the same order, or the replay never ends; and
// what one rank sends another receives.
TEST(Chakra, RanksOfAGroupAgree) {
  const Plan plan = pipeline_plan();
  SimulationOptions options;
  options.granularity = Granularity::kernel;
  const Simulation made = simulate(plan, options);
  ChakraTraces traces(plan, made);
  using Call = std::pair<std::uint64_t, std::uint64_t>;
  std::map<std::string, std::map<std::int64_t, std::vector<Call>>> calls;
  std::set<std::vector<std::uint64_t>> sent;
  std::set<std::vector<std::uint64_t>> received;
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    for (const Node& node : nodes_of(traces.of_rank(rank))) {
      const auto value = [&](const char* name) { return node.numbers.at(name); };
      EXPECT_EQ(value("is_cpu_op"), 0U);
      if (node.type == 7) {
        calls[node.group][rank].emplace_back(value("comm_type"), value("comm_size"));
      } else if (node.type == 5 || node.type == 6) {
        const std::vector<std::uint64_t> message = {value("comm_src"), value("comm_dst"),
                                                    value("comm_size"), value("comm_tag")};
        EXPECT_EQ(value(node.type == 5 ? "comm_src" : "comm_dst"),
                  static_cast<std::uint64_t>(rank));
        EXPECT_TRUE((node.type == 5 ? sent : received).insert(message).second);
      } else {
        EXPECT_EQ(node.type, 4U);
      }
    }
  }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent.size(), 2U * 4 * 8 / 2);  // each way, 4 micro-batches, between 8 / 2 pairs
  const auto groups = nlohmann::json::parse(traces.groups());
  ASSERT_EQ(groups.size(), calls.size());
  for (const auto& [group, by_rank] : calls) {
    std::vector<std::int64_t> ranks;
    for (const auto& [rank, list] : by_rank) {
      ranks.push_back(rank);
      EXPECT_EQ(list, by_rank.begin()->second) << group;
    }
    EXPECT_EQ(groups.at(group).get<std::vector<std::int64_t>>(), ranks);
  }
}

}  // namespace
}  // namespace shardwise::sim
