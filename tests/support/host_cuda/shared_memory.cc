#include "tests/support/host_cuda/shared_memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/host_cuda/fibers.h"

namespace host_cuda {
namespace {

constexpr std::size_t kPoolBytes = std::size_t{64} << 30U;  // of addresses
constexpr std::size_t kGap = 128;
constexpr std::size_t kPageBytes = 4096;
constexpr unsigned char kPoison = 0xff;  // NaN in every type of float

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "host_cuda: shared memory: %s\n", why);
  std::abort();
}

}  // namespace

void SharedMemory::begin_block(std::size_t dynamic_bytes) {
  if (pool_ == nullptr) {
    void* const made = mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) give_up("no addresses");
    pool_ = static_cast<unsigned char*>(made);
  }
  count_ = 0;
  end_ = begin_ + kGap;
  forbid(pool_ + begin_, kGap);
  dynamic_ = dynamic_bytes > 0 ? fresh(dynamic_bytes) : nullptr;
}

void SharedMemory::end_block() {
  if (!races_are_watched()) {
    allow(pool_ + begin_, end_ - begin_);
    return;
  }
  const std::size_t next = (end_ + kPageBytes - 1) / kPageBytes * kPageBytes;
  madvise(pool_ + begin_, next - begin_, MADV_DONTNEED);
  begin_ = next;
}

unsigned char* SharedMemory::fresh(std::size_t bytes) {
  unsigned char* const at = pool_ + end_;
  const std::size_t taken = (bytes + kGap - 1) / kGap * kGap + kGap;
  end_ += taken;
  if (end_ > kPoolBytes) give_up("the addresses are used up");
  fill(at, kPoison, bytes);
  forbid(at + bytes, taken - bytes);
  return at;
}

void* SharedMemory::array(const void* site, std::size_t bytes) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (arrays_[i].site == site) return arrays_[i].at;
  }
  if (count_ == arrays_.size()) give_up("more than 32 arrays in a kernel");
  arrays_[count_] = {site, fresh(bytes)};
  return arrays_[count_++].at;
}

}  // namespace host_cuda
