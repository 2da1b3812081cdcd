#pragma once

// Ranks of the NCCL fake that are processes. They meet in a folder: what a rank says or sends is a
// file there, which appears whole.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tests/support/host_cuda/fake_nccl_state.h"

namespace fake_nccl {

/// Whether ranks are processes, as meet_in() says.
bool are_processes();
void post(const std::string& name, std::span<const std::byte> bytes);
/// Whether ranks 0 … size - 1 have posted it, each its own: how many.
int count_posted(const std::string& name, int size);
std::vector<std::byte> posted(const std::string& name, int rank);
std::string own_name(const std::string& name, int rank);

/// Work of this process's rank for a collective of `clique`, number `number`: posts what it
/// sends; once all have, reads what they sent; writes what it received.
/// \param take  of all that was sent what this rank receives
std::vector<fake_cuda::Work> works_of_process(
    const std::string& name, const Clique& clique, std::int64_t number, int rank,
    const std::shared_ptr<Operation>& operation, const std::shared_ptr<bool>& aborted,
    const std::function<void(const Operation&, std::vector<std::byte>&)>& take, void* to,
    std::size_t sent_bytes);

}  // namespace fake_nccl
