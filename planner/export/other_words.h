#pragma once

#include <string>

#include "planner/export/framework/conditions.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {

/// Flags that say what a plan has in words that export would not choose: --fp8-recipe mxfp8, where
/// the plan's block is written as blockwise, or --ckpt-format torch, where the plan has no word for
/// checkpoints. Also numbers of the model that change neither memory nor time: --rotary-base.
class OtherWords {
 public:
  /// \pre framework outlives it
  OtherWords(const Framework& framework, const Plan& plan);

  /// Whether a flag has another value than export writes, and the plan is the same with it. False
  /// of other sizes of the model, of frameworks that are told by a file of keys, and of a flag in
  /// whose place another one is written. \param value  in the one spelling of settings_of()
  bool say_it(const SettingSpec& spec, const std::string& value) const;

 private:
  Values facts_with(Values settings) const;

  const Framework& framework_;
  Values known_;     // facts that hold whatever the flags say
  Values settings_;  // that export writes; empty: it cannot write the plan
  Values facts_;     // that these say
};

}  // namespace shardwise
