#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/model/parameter_words.h"
#include "planner/question/mfu/asked_mfu.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

struct MfuFlags {
  AskedMfu asked;
  std::string recompute = "full";
  bool json = false;
};

/// "MFU 62.5 % of the dense bf16 peak …", then of what.
std::string mfu_answer_text(const MfuAnswer& answer, bool colour) {
  std::string text =
      paint(fmt::format("MFU {}", format_percent(answer.rows[0].of_dense)), Tone::strong, colour);
  text += fmt::format(" of the dense {} peak, {} with attention counted whole\n",
                      name_of(answer.precision), format_percent(answer.rows[1].of_dense));
  text += wrap(fmt::format("{}, {}, sequences of {} tokens; {} {}, {} tokens/s of each",
                           answer.model.name, parameters_words(answer.model),
                           format_count(answer.sequence_length), format_count(answer.gpus),
                           answer.gpu.name,
                           format_count(static_cast<std::int64_t>(answer.tokens_per_second))),
               kTextWidth) +
          "\n";
  if (answer.above_kernels) {
    text +=
        wrap(fmt::format("{}: {} is more than matrix products alone reach on this GPU, {}",
                         paint("unlikely", Tone::warning, colour),
                         format_percent(answer.rows[0].of_dense), format_percent(answer.kernels)),
             kTextWidth) +
        "\n";
  }
  return text;
}

std::string match_words(const MfuAnswer& answer, const MfuMatch& match) {
  return fmt::format("{}{}, {}", answer.rows[match.row].convention.name,
                     match.sparse ? " over the sparse peak" : "", format_percent(match.share));
}

/// What a printed number follows, a line for each convention.
std::string printed_text(const MfuAnswer& answer, bool colour) {
  if (!answer.printed) return "";
  const std::string printed = format_percent(answer.printed->share);
  if (answer.matches.empty()) {
    return paint(fmt::format("{} follows none of these", printed), Tone::warning, colour) +
           fmt::format("\n  nearest: {}\n", match_words(answer, answer.nearest)) +
           "  another model, sequence length, number of GPUs, or peak?\n";
  }
  std::string text = fmt::format("{} follows\n", paint(printed, Tone::strong, colour));
  for (const MfuMatch& each : answer.matches) {
    text += fmt::format("  {}\n", match_words(answer, each));
  }
  return text;
}

std::string conventions_text(const MfuAnswer& answer, bool colour) {
  const bool sparse = answer.sparse.value() > 0;
  Table table({{"convention", Align::left},
               {"FLOPs of a token", Align::left},
               {"GFLOP"},
               {fmt::format("of {:.0f}", answer.dense.value() / 1e12)},
               {sparse ? fmt::format("of {:.0f}", answer.sparse.value() / 1e12) : ""}});
  bool executed = false;
  for (const MfuRow& row : answer.rows) {
    if (row.convention.executed && !executed) table.rule();
    executed = row.convention.executed;
    table.row({std::string(row.convention.name), std::string(row.convention.formula),
               fmt::format("{:.2f}", row.convention.flops_per_token / 1e9),
               format_percent(row.of_dense), sparse ? format_percent(row.of_sparse) : ""});
  }
  return "\n" + table.text(colour);
}

std::string legend_text(const MfuAnswer& answer, std::string_view recompute) {
  std::string text =
      "of: TFLOP/s, the dense peak; the larger is that of 2:4 sparse matrices, which\n"
      "  data sheets print first and training does not use\n";
  if (answer.sparse.value() == 0) text = "of: TFLOP/s, the dense peak\n";
  if (answer.rows.back().convention.executed) {
    text += fmt::format("HFU: as if recompute were {} (--recompute)\n", recompute);
  }
  return text +
         "N all parameters, of experts those a token meets; N' weights of products; P\n"
         "  positions; E input embedding; V both tables; L layers; H heads of Q; T tokens\n";
}

std::string mfu_json(const MfuAnswer& answer) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.mfu/1");
  json.member("model", answer.model.name);
  json.member("gpu", answer.gpu.name);
  json.member("gpus", answer.gpus);
  json.member("sequence_length", answer.sequence_length);
  json.member("precision", name_of(answer.precision));
  json.member("tokens_per_s_per_gpu", answer.tokens_per_second);
  json.member("dense_peak_tflops", answer.dense.value() / 1e12);
  if (answer.sparse.value() > 0) {
    json.member("sparse_peak_tflops", answer.sparse.value() / 1e12);
  } else {
    json.null_member("sparse_peak_tflops");
  }
  json.member("above_kernels", answer.above_kernels);
  json.begin_array("conventions");
  for (const MfuRow& row : answer.rows) {
    json.begin_object();
    json.member("id", row.convention.id);
    json.member("name", row.convention.name);
    json.member("formula", row.convention.formula);
    json.member("source", row.convention.source);
    json.member("flops_per_token", row.convention.flops_per_token);
    json.member("executed", row.convention.executed);
    json.member("of_dense_peak", row.of_dense);
    if (answer.sparse.value() > 0) json.member("of_sparse_peak", row.of_sparse);
    json.end_object();
  }
  json.end_array();
  if (answer.printed) {
    json.begin_object("printed");
    json.member("share", answer.printed->share);
    json.begin_array("follows");
    for (const MfuMatch& each : answer.matches) {
      json.begin_object();
      json.member("id", answer.rows[each.row].convention.id);
      json.member("peak", each.sparse ? "sparse" : "dense");
      json.member("share", each.share);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.begin_array("assumptions");
  for (const Assumption& each : answer.said) json.element(each.text);
  json.end_array();
  json.end_object();
  return json.text();
}

ExitCode run_mfu(const MfuFlags& flags) {
  AskedMfu asked = flags.asked;
  asked.recompute = from_name<Recompute>(flags.recompute).value_or(Recompute::full);
  const Result<MfuAnswer> answer = answer_mfu(asked);
  if (!answer) return refuse(answer.problems());
  if (flags.json) {
    fmt::print("{}", mfu_json(*answer));
    return ExitCode::done;
  }
  const bool colour = wants_colour();
  fmt::print("{}{}{}{}", mfu_answer_text(*answer, colour), printed_text(*answer, colour),
             conventions_text(*answer, colour), legend_text(*answer, flags.recompute));
  for (const Assumption& each : answer->said) {
    fmt::print("{}\n", wrap("assumed: " + each.text, kTextWidth, 2));
  }
  return ExitCode::done;
}

}  // namespace

void add_mfu(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("mfu", "MFU of a measured rate, in each convention that logs use");
  auto flags = std::make_shared<MfuFlags>();
  AskedMfu& asked = flags->asked;
  verb->add_option("--model", asked.model, "Catalogue name, config.json, or a folder with one")
      ->type_name("NAME|FILE")
      ->required();
  verb->add_option("--gpu", asked.gpu, "Catalogue name, its first part (h100), or a GPU file")
      ->type_name("NAME|FILE")
      ->required();
  add_number(*verb, "--tokens-per-second", asked.tokens_per_second, 1e-6, 1e15,
             "Tokens a second of all GPUs together")
      ->required();
  add_integer(*verb, "--gpus", asked.gpus, 1, kMostGpus, "GPUs that train these tokens [1]");
  add_integer(*verb, "--sequence-length", asked.sequence_length, 1, std::int64_t{1} << 30,
              "Tokens of a sequence [4096]");
  add_checked(*verb, "--printed",
              "MFU that a log prints: 38.5%, or 0.385; says which convention it follows",
              [flags](std::string_view text) {
                flags->asked.printed = read_printed_share(text);
                return flags->asked.printed ? std::string()
                                            : fmt::format("{} is no share of a peak", text);
              })
      ->type_name("SHARE");
  verb->add_option("--precision", asked.precision,
                   "bf16, fp16, fp32, fp8 or fp4 [what the GPU has]")
      ->type_name("TYPE");
  verb->add_option("--recompute", flags->recompute,
                   "none, selective or full: what HFU counts [full]")
      ->type_name("KIND")
      ->check(CLI::IsMember({"none", "selective", "full"}));
  verb->add_flag("--json", flags->json, "Print the same facts for a program");
  verb->footer(
      "Examples\n"
      "  shardwise mfu --model llama-3.1-8b --gpu h100-sxm --gpus 8 \\\n"
      "      --tokens-per-second 54280 --sequence-length 8192 --printed 39.7%\n"
      "\n"
      "Exit codes\n"
      "  0 done   2 bad input, or a rate above the peak   3 environment failure");
  verb->callback([&run, flags] { run = [flags] { return run_mfu(*flags); }; });
}

}  // namespace shardwise::cli
