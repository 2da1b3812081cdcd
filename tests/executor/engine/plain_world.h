#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/world.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec::test {

/// A communicator that promises less than the one it is made of, and refuses what it does not
/// promise.
class PlainCommunicator : public Communicator {
 public:
  PlainCommunicator(std::unique_ptr<Communicator> of, const CommunicatorTraits& traits)
      : of_(std::move(of)), traits_(traits) {}
  int rank() const override { return of_->rank(); }
  int size() const override { return of_->size(); }
  CommunicatorTraits traits() const override { return traits_; }
  void all_gather(const ConstTensorView& mine, const TensorView& all, std::int64_t shard,
                  DeviceStream& stream) override {
    check(all.count, shard);
    of_->all_gather(mine, all, shard, stream);
  }
  void reduce_scatter(const ConstTensorView& all, const TensorView& mine, std::int64_t shard,
                      bool add, DeviceStream& stream) override {
    SHARDWISE_CHECK(traits_.adds_into_shard || (!add && all.dtype == mine.dtype),
                    "a communicator adds that does not say so");
    check(all.count, shard);
    of_->reduce_scatter(all, mine, shard, add, stream);
  }
  void all_reduce(const TensorView& values, DeviceStream& stream) override {
    of_->all_reduce(values, stream);
  }
  void all_to_all(const ConstTensorView& all, const TensorView& received, std::int64_t shard,
                  DeviceStream& stream) override {
    check(all.count, shard);
    of_->all_to_all(all, received, shard, stream);
  }
  void send_receive(std::span<const Message> messages, DeviceStream& stream) override {
    of_->send_receive(messages, stream);
  }

 private:
  void check(std::size_t all, std::int64_t shard) const {
    SHARDWISE_CHECK(traits_.ragged_shards || static_cast<std::int64_t>(all) == shard * of_->size(),
                    "a communicator is given ragged pieces that does not take them");
  }

  std::unique_ptr<Communicator> of_;
  CommunicatorTraits traits_;
};

/// Its communicators are such; notes what is made, in order.
class PlainWorld : public World {
 public:
  PlainWorld(World& of, const CommunicatorTraits& traits, std::vector<std::string>* made = nullptr)
      : of_(of), traits_(traits), made_(made) {}
  int rank() const override { return of_.rank(); }
  int size() const override { return of_.size(); }
  CommunicatorTraits traits() const override { return traits_; }
  std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                              Control control) override {
    return of_.control_group(ranks, control);
  }
  std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                             Stream stream) override {
    if (made_ != nullptr) {
      made_->push_back(std::to_string(static_cast<int>(stream)) + " of " +
                       std::to_string(ranks.size()));
    }
    return std::make_unique<PlainCommunicator>(of_.communicator(ranks, stream), traits_);
  }

 private:
  World& of_;
  CommunicatorTraits traits_;
  std::vector<std::string>* made_;
};

}  // namespace shardwise::exec::test
