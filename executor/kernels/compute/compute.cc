#include "executor/kernels/compute/compute.h"

#include "planner/spec/text/check.h"

namespace shardwise::exec {

void Compute::vocabulary_logits(const VocabularyWork& /*work*/, DeviceStream& /*stream*/) {
  SHARDWISE_CHECK(false, "no kernel of a shared vocabulary on this device");
}

void Compute::vocabulary_gradients(const VocabularyWork& /*work*/, DeviceStream& /*stream*/) {
  SHARDWISE_CHECK(false, "no kernel of a shared vocabulary on this device");
}

}  // namespace shardwise::exec
