#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/data/token_files.h"
#include "executor/engine/trainer.h"
#include "executor/launch/rank_devices.h"
#include "executor/storage/stored_tensor.h"
#include "planner/spec/text/units.h"

namespace shardwise::exec {

/// Kind of ranks that no launcher started: processes where GPUs move tensors by NCCL and threads
/// elsewhere, or what the user says.
enum class RanksAs : std::uint8_t { usual, threads, processes };

/// Options a user asked for.
struct RunOptions {
  std::vector<std::string> command;  // the program's words, to start it again as a rank
  std::string plan;
  std::string data;                    // a text or a file of tokens; empty: the catalogue's text
  std::string data_format = "detect";  // of kDataFormats
  std::string tokenizer;               // a tokenizer.json for the text; empty: a token a byte
  std::string init_from;               // a folder of safetensors; empty: weights are drawn
  std::string save_weights;            // a folder for them after the last step; empty: none
  StoredType weights_dtype = StoredType::f32;  // of the numbers in them: f32 or bf16
  Bytes max_shard_size = 5_GB;                 // of a file there
  std::string report;                          // files to write; empty: none
  std::string trace;
  std::string metrics;
  std::string checkpoint_dir;         // checkpoints go here; empty: none are written
  std::int64_t checkpoint_every = 0;  // steps; 0: after the last
  std::int64_t keep = 2;              // complete ones; 0: all
  std::string resume;                 // a checkpoint, a folder of them, latest or auto; empty: none
  bool replace_checkpoints = false;   // those in checkpoint_dir that the run would be refused for
  bool resume_on_other_data = false;  // where tokens, sequences or their order are others
  bool seed_given = false;
  std::int64_t compare_replicas = 100;  // steps between comparisons of copies; 0: none
  int ranks = 0;                        // of this host, without a launcher; 0: as the plan has
  RanksAs ranks_as = RanksAs::usual;
  double timeout_s = 600;  // that a rank waits for another
  Bytes memory_limit{0};   // to read data and tokenizer with, a process; 0: usual_memory_limit()
  DeviceOptions device;
  TrainOptions train;
};

}  // namespace shardwise::exec
