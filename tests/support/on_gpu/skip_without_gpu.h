#pragma once

namespace on_gpu {

/// From now on a test skips, with the reason, where there is no GPU, and fails when the GPU did.
/// Called before the tests run.
void skip_without_gpu();

}  // namespace on_gpu
