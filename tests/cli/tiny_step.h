#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace shardwise::cli {

/// Arguments that simulate a step of GPT-2 on a node of DGX H100, FSDP2 ZeRO-3, and `more`.
inline std::vector<std::string> tiny_step(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {
      "simulate", "--model",      "gpt2", "--cluster",           "dgx-h100", "--engine",
      "fsdp2",    "--zero-stage", "3",    "--global-batch-size", "16"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

}  // namespace shardwise::cli
