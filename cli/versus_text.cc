#include "cli/versus_text.h"

#include <fmt/format.h>

#include <string_view>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/report/report_names.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

using sim::MechanismEffect;
using sim::StepFigures;
using sim::Versus;

std::string change(double before, double after) {
  return before > 0 ? signed_percent(after / before - 1) : "-";
}
std::string change(Seconds before, Seconds after) { return change(before.value(), after.value()); }
std::string change(Bytes before, Bytes after) {
  return change(static_cast<double>(before.value()), static_cast<double>(after.value()));
}

/// A mechanism's change of a total that is not its own.
std::string share(double before, double after, double total) {
  return signed_percent((after - before) / total);
}
std::string share(Seconds before, Seconds after, Seconds total) {
  return share(before.value(), after.value(), total.value());
}
std::string share(Bytes before, Bytes after, Bytes total) {
  return share(static_cast<double>(before.value()), static_cast<double>(after.value()),
               static_cast<double>(total.value()));
}

std::string fit_text(const Verdict& verdict) {
  switch (verdict.fit) {
    case Fit::fits:
      return "yes";
    case Fit::at_risk:
      return "at risk";
    case Fit::does_not_fit:
      return format_bytes(verdict.over()) + " too much";
  }
  return "";
}

std::string sides_text(const Versus& found, const Plan& first, const Plan& second, bool colour) {
  Table table({{"", Align::left}, {first.engine.name}, {second.engine.name}, {"difference"}});
  const StepFigures& a = found.first;
  const StepFigures& b = found.second;
  table.row({"step", format_seconds(a.step), format_seconds(b.step), change(a.step, b.step)});
  table.row({"tokens a second", format_scaled(a.tokens_per_s), format_scaled(b.tokens_per_s),
             change(a.tokens_per_s, b.tokens_per_s)});
  table.row({"MFU", format_percent(a.mfu), format_percent(b.mfu), change(a.mfu, b.mfu)});
  table.row({"peak allocated", format_bytes(a.allocated), format_bytes(b.allocated),
             change(a.allocated, b.allocated)});
  table.row({"peak reserved", format_bytes(a.reserved), format_bytes(b.reserved),
             change(a.reserved, b.reserved)});
  table.row({"fragments of it", format_bytes(a.fragmented()), format_bytes(b.fragmented()), ""});
  table.row({fmt::format("fits {}", format_bytes(a.verdict.usable)), fit_text(a.verdict),
             fit_text(b.verdict), ""});
  return table.text(colour);
}

std::string way_text(const Versus& found, const Plan& first, const Plan& second, bool colour) {
  const StepFigures& from = found.first;
  Table table({{"also", Align::left},
               {"step"},
               {"time"},
               {"alone"},
               {"allocated"},
               {"reserved"},
               {"alone"}});
  table.row({first.engine.name, format_seconds(from.step), "", "", "", "", ""});
  const StepFigures* before = &from;
  const auto add = [&](const MechanismEffect& effect, const StepFigures& total) {
    const StepFigures& now = effect.in_turn;
    table.row({effect.name, format_seconds(now.step), share(before->step, now.step, total.step),
               effect.alone ? share(from.step, effect.alone->step, total.step) : "-",
               share(before->allocated, now.allocated, total.allocated),
               share(before->reserved, now.reserved, total.reserved),
               effect.alone ? share(from.reserved, effect.alone->reserved, total.reserved) : "-"});
    before = &now;
  };
  for (const MechanismEffect& effect : found.effects) add(effect, from);
  table.rule();
  const StepFigures& b = found.second;
  table.row({second.engine.name, format_seconds(b.step), change(from.step, b.step), "",
             change(from.allocated, b.allocated), change(from.reserved, b.reserved), ""});
  for (const MechanismEffect& effect : found.beyond) add(effect, from);
  return table.text(colour);
}

/// What is left once both engines have the same kernels, and with what the second can do besides.
std::string equal_text(const Versus& found, const Plan& second, bool colour) {
  const StepFigures& equal = found.equal_kernels();
  Table table({{"with equal kernels", Align::left}, {"step"}, {"allocated"}, {"reserved"}});
  const auto add = [&](const std::string& name, const StepFigures& now) {
    table.row({name, change(equal.step, now.step), change(equal.allocated, now.allocated),
               change(equal.reserved, now.reserved)});
  };
  add(second.engine.name, found.second);
  if (!found.beyond.empty()) add("and user buffers", found.beyond.back().in_turn);
  return table.text(colour);
}

void write_figures(JsonWriter& json, const StepFigures& figures) {
  json.member("step_s", figures.step.value());
  json.member("mfu", figures.mfu);
  json.member("allocated_bytes", figures.allocated.value());
  json.member("reserved_bytes", figures.reserved.value());
}

void write_side_figures(JsonWriter& json, const StepFigures& figures) {
  write_figures(json, figures);
  json.member("tokens_per_s", figures.tokens_per_s);
  json.member("fit", name_of(figures.verdict.fit));
  json.member("memory_bytes", figures.verdict.point.value());
  json.member("usable_bytes", figures.verdict.usable.value());
}

void write_effects(JsonWriter& json, const char* key, const std::vector<MechanismEffect>& effects) {
  json.begin_array(key);
  for (const MechanismEffect& effect : effects) {
    json.begin_object();
    json.member("mechanism", effect.name);
    json.member("what", effect.what);
    write_figures(json, effect.in_turn);
    if (effect.alone) {
      json.begin_object("alone");
      write_figures(json, *effect.alone);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string versus_text(const Versus& found, const Plan& first, const Plan& second, bool colour) {
  std::string text = fmt::format("{} on {} GPUs of {}, ZeRO-{}\n\n", first.model.name,
                                 first.layout.world(), first.cluster.name, first.layout.zero_stage);
  text += sides_text(found, first, second, colour) + "\n";
  text += way_text(found, first, second, colour) + "\n";
  text += equal_text(found, second, colour);
  text += paint(fmt::format("\n{} becomes {} step by step, in % of its totals; alone: that step\n",
                            first.engine.name, second.engine.name),
                Tone::quiet, colour);
  for (const MechanismEffect& effect : found.effects) {
    text += paint(fmt::format("  {:<15} {}\n", effect.name, effect.what), Tone::quiet, colour);
  }
  for (const MechanismEffect& effect : found.beyond) {
    text += paint(fmt::format("  {:<15} {}\n", effect.name, effect.what), Tone::quiet, colour);
  }
  return text;
}

std::string versus_json(const Versus& found, const Plan& first, const Plan& second) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.versus/1");
  json.begin_object("first");
  json.member("engine", first.engine.name);
  write_side_figures(json, found.first);
  json.end_object();
  json.begin_object("second");
  json.member("engine", second.engine.name);
  write_side_figures(json, found.second);
  json.end_object();
  write_effects(json, "effects", found.effects);
  write_effects(json, "beyond", found.beyond);
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
