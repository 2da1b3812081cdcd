#pragma once

#include <string>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/export/check_configuration.h"
#include "planner/export/configuration/settings_of.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {

/// Share of a step's time or of a GPU's memory below which a change is within the model's error.
inline constexpr double kWorthSaying = 0.02;

/// "2.05 GiB more on a GPU".
std::string memory_words(Bytes change);

/// Memory and time of a plan.
Evaluation evaluation_of(const Plan& plan);

/// A plan beside others that differ from it in one thing.
class PlanComparison {
 public:
  /// Subject of a finding within the plan: its words, and the fields by which its setting is found.
  struct About {
    std::string rule;
    std::vector<std::string> fields;
    std::string says;
    std::string fix;
  };

  /// \pre all outlive the comparison
  PlanComparison(const Plan& plan, const Framework& framework, const Settings& settings)
      : plan_(plan), framework_(framework), settings_(settings), own_(evaluation_of(plan)) {}

  /// Whether the framework can be told it, as it is.
  bool can_be_told(const Plan& changed) const;

  /// Adds a finding where `changed` is legal, fits, is faster by kWorthSaying, and can be told.
  /// \returns whether it does
  bool add_if_faster(const Plan& changed, const About& about);

  /// Adds a finding where `changed` is legal and holds less by kWorthSaying on the fullest GPU.
  /// \returns whether it does
  bool add_if_smaller(const Plan& changed, const About& about);

  /// Adds a finding about the setting that says one of the fields.
  void add(const About& about);
  /// Adds a finding about a setting by its name.
  void add_at(const std::string& setting, const About& about);

  std::vector<Finding> take() { return std::move(findings_); }

 private:
  /// Whether the plan does.
  bool fits() const;
  /// The fullest GPU as the verdict of the plan counts it: with what is cached where it fits, and
  /// what a run cannot do without where it does not.
  Bytes size_of(const Evaluation& evaluation) const;
  Finding finding_of(const About& about) const;
  /// Text of the change, with the settings that say it.
  std::string fix_of(const About& about, const Plan& changed) const;

  const Plan& plan_;
  const Framework& framework_;
  const Settings& settings_;
  Evaluation own_;
  std::vector<Finding> findings_;
};

}  // namespace shardwise
