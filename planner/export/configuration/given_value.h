#pragma once

#include <optional>
#include <string>

#include "planner/export/configuration/configuration.h"
#include "planner/export/framework/framework.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Value that a file or a command line gives a setting, as the framework's parser takes it.
/// \param negative  of a switch: its name turns it off
/// \returns the value in one spelling; nothing where it says nothing, or what `problems` says
std::optional<std::string> value_of(const Framework& framework, const SettingSpec& spec,
                                    const GivenSetting& given, bool negative,
                                    Diagnostics& problems);

/// Says what is wrong where a section of a file has a plain value: "bf16": true. No framework here
/// takes that for the keys in it.
/// \param name  of the section, as the framework's table has it
std::optional<Diagnostic> value_of_section(const Framework& framework, const GivenSetting& given,
                                           const std::string& name);

/// Says what is wrong where a setting that takes one value has keys: "train_batch_size": {"x": 1}.
/// \param name  of the key, with the setting before it
std::optional<Diagnostic> keys_of_value(const Framework& framework, const GivenSetting& given,
                                        const std::string& name);

/// Says what is wrong where a key is null: most frameworks take that for one that is not there.
std::optional<Diagnostic> null_of(const Framework& framework, const GivenSetting& given);

}  // namespace shardwise
