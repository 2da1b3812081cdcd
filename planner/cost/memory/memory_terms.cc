#include "planner/cost/memory/memory_terms.h"

#include <algorithm>

#include "planner/cost/layer/root_unit.h"
#include "planner/cost/memory/moment_pass.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/cost/memory/stage_moments.h"
#include "planner/cost/memory/stage_residents.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/spec/plan/engine_profile.h"

namespace shardwise {
namespace {

using enum MemoryCategory;
using enum MemoryPhase;

constexpr std::uint8_t bit(MemoryPhase phase) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(phase));
}
constexpr std::uint8_t kPasses = bit(first_forward_backward) | bit(steady_forward_backward);
constexpr std::uint8_t kSteps = bit(first_optimizer_step) | bit(steady_optimizer_step);
constexpr std::uint8_t kRunning = kPasses | kSteps;
constexpr std::uint8_t kAlways = kRunning | bit(after_init);
constexpr std::uint8_t kLater = bit(steady_forward_backward) | bit(steady_optimizer_step);
constexpr std::uint8_t kAfterFirstPass = kLater | bit(first_optimizer_step);

Amount once(std::int64_t bytes) { return {1, bytes}; }

/// What the first optimizer step and later ones hold, in one term where it is as much.
void add_steps(StageTerms& terms, const StageStates& s) {
  const auto add = [&](MemoryCategory category, const char* formula, Amount StepTensors::*of) {
    const Amount& first = s.first_step.*of;
    const Amount& steady = s.steady_step.*of;
    const bool alike = first.bytes() == steady.bytes();
    terms.add(category, alike ? kSteps : bit(first_optimizer_step), formula, first);
    if (!alike) terms.add(category, bit(steady_optimizer_step), formula, steady);
  };
  add(gradients, "elements of a rank x bytes of a gradient", &StepTensors::gradients);
  add(gradient_staging, "elements joined in one tensor to be cast x bytes of a gradient",
      &StepTensors::joined);
  add(main_gradients, "elements stepped on at once x bytes of a gradient cast for it",
      &StepTensors::cast);
  add(optimizer_scratch, "elements of the largest gradient x bytes of one in fp64, for the norm",
      &StepTensors::squares);
}

void add_states(StageTerms& terms, const StageStates& s, const StageContext& context) {
  terms.add(weights, kAlways, "elements of a rank x bytes of a compute weight", s.weights);
  terms.add(weights, kAlways, "elements kept in fp8 x bytes of one", s.narrow_weights);
  terms.add(weights, kRunning, "bytes of fp8 matrices x casts kept of them", s.narrow_casts);
  terms.add(weights, kRunning, "scales of those casts x bytes of one", s.narrow_scales);
  terms.add(weights, kAlways, "frozen elements of a rank x bytes of a compute weight",
            s.frozen_weights);
  terms.add(weights, kAlways,
            "words of a router's buffers and of scales of 4-bit matrices x bytes of one",
            s.router_buffers);
  terms.add(main_weights, kAlways, "elements of a rank x bytes of a main weight", s.main_weights);
  terms.add(gradients, kAlways, "elements of a rank x bytes of a buffered gradient", s.gradients);
  terms.add(gradient_staging, kAlways, "elements of the reduction buffer x bytes of a gradient",
            s.reduce_buffer);
  const bool late = moments_are_late(*context.rules, *context.layout);
  const std::uint8_t later = s.first_step.has_moments ? kAfterFirstPass : kLater;
  terms.add(optimizer_moments, late ? later : kAlways, "elements of a rank x bytes of its moments",
            s.moments);
  terms.add(optimizer_moments, late ? later : kAlways,
            "elements whose moments are in 8 bits x bytes of both", s.narrow_moments);
  terms.add(optimizer_moments, late ? later : kAlways,
            "blocks of 256 elements and values of 8 bits x bytes of both moments' scales",
            s.moment_scales);
  add_steps(terms, s);
  terms.add(optimizer_scratch, kSteps,
            "elements stepped on at once x bytes of the step's temporaries", s.step_scratch);
  terms.add(gradient_staging, kSteps, "elements of the flat copy x bytes of a gradient",
            s.flat_gradients);
  terms.add(gradient_staging, kSteps, "elements an all-to-all brings x bytes of a gradient",
            s.received_gradients);
}

void add_resident_terms(StageTerms& terms, const StageResidents& r, const MemoryRules& rules) {
  terms.add(library_workspace, kRunning, "global buffer: gathered input, attention scores",
            r.gather_buffer);
  terms.add(library_workspace, kRunning, "BLAS handles of the framework x workspace",
            r.framework_workspace);
  terms.add(library_workspace, kRunning, "workspace of the engine's GEMMs", r.engine_workspace);
  terms.add(library_workspace, kRunning, "streams of grouped GEMMs x workspace",
            r.grouped_workspace);
  terms.add(library_workspace, kRunning, "streams of overlapped GEMMs x workspace",
            r.overlap_workspace);
  terms.add(library_workspace, kAlways, "workspace of our kernels on a GPU", r.kernel_workspace);
  terms.add(gradient_staging, kRunning,
            "elements of a placeholder for each shape of matrix x bytes of a weight",
            r.placeholders);
  terms.add(working, kAlways, "block of a step's tokens, losses, scalars and squares",
            r.step_block);
  terms.add(communicator, kAlways, "communicators x bytes of one", r.communicators);
  terms.add(runtime_context, kAlways, "context and loaded kernels", once(rules.runtime.context));
}

void add_between_steps(StageTerms& terms, const StageParts& parts, const StageContext& context) {
  const StageBuffers buffers = stage_buffers(parts, context);
  const BuffersBetweenSteps kept = buffers_between_steps(buffers, context);
  const auto add = [&](const char* formula, const WholeWeights& w) {
    terms.add(gathered_weights, kSteps, formula, w.wide(*context.rules));
    terms.add(gathered_weights, kSteps, "gathered elements in fp8 x bytes of one",
              w.slim(*context.rules));
  };
  add("elements of embedding and head x bytes of a weight", kept.root);
  add("elements of the units in the gather buffers x bytes of a weight", kept.units);
  add("elements of parts kept after forward x bytes of a weight", buffers.parts);
  terms.add(gradient_staging, kSteps, "elements of the reduction queue x bytes of a gradient",
            kept.reductions);
}

void add_gathered(StageTerms& terms, std::uint8_t phases, const Gathered& g,
                  const MemoryRules& rules) {
  const auto add = [&](const char* formula, const WholeWeights& w) {
    terms.add(gathered_weights, phases, formula, w.wide(rules));
    terms.add(gathered_weights, phases, "gathered elements in fp8 x bytes of one", w.slim(rules));
  };
  add("elements of the running layer x bytes of a weight", g.unit);
  add("elements of gather outputs kept x bytes of a weight", g.output);
  add("elements gathered ahead x bytes of a weight", g.ahead);
  add("elements of embedding and head x bytes of a weight", g.root);
  add("elements of the shard cast to be sent x bytes of a weight", g.cast);
  add("elements of casts or parts kept after forward x bytes of a weight", g.parts);
  add("elements of the units in the gather buffers x bytes of a weight", g.queue);
}

/// One term for all chunks of the stage that keep as much.
void add_in_flight(StageTerms& terms, std::uint8_t phases, const StageParts& parts,
                   const HeldPasses& held) {
  const std::vector<std::int64_t>& saved = parts.chunk_saved;
  for (std::size_t c = 0; c < saved.size(); ++c) {
    if (std::find(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(c), saved[c]) !=
        saved.begin() + static_cast<std::ptrdiff_t>(c)) {
      continue;
    }
    std::int64_t passes = 0;
    for (std::size_t other = c; other < saved.size(); ++other) {
      if (saved[other] == saved[c]) passes += held.of(static_cast<std::int32_t>(other));
    }
    terms.add(activations_in_flight, phases,
              saved.size() == 1
                  ? "other micro-batches in flight x activations of one"
                  : "activations of other chunks and micro-batches in flight x bytes of one",
              {passes, saved[c]});
  }
}

/// The first of `parts` and what of `whole` they leave, for the pieces of one moment.
void add_pass(StageTerms& terms, std::uint8_t phases, const StageParts& parts,
              const StageContext& context, const StageStates& states, const FullestMoment& at) {
  const StageMoment& moment = at.moment;
  const bool backward = at.backward;
  StageBuffers buffers = stage_buffers(parts, context);
  buffers.first_pass = at.first_pass;
  buffers.first_microbatch = at.first_microbatch;
  const PassMemory pass =
      at.joined ? joined_pass(buffers, moment, context) : pass_of(buffers, moment, backward);
  const OtherLayers saved = other_layers(moment, backward, parts, context);
  terms.add(activations, phases, "activations of the running layer", once(pass.kept));
  terms.add(activations, phases, "earlier layers of its kind x activations of one", saved.alike);
  terms.add(activations, phases, "activations of the other earlier layers", saved.others);
  const bool planned = plans_buffers(*context.rules->engine);
  terms.add(activations, phases,
            planned ? "rest of the buffer for two layers, one moving to or from the host"
                    : "activations of the layer moving to or from the host",
            saved.on_its_way);
  terms.add(activations, phases, "activations of later layers for deferred weight gradients",
            saved.later);
  terms.add(activations, phases, "inputs of finished blocks and their gradients",
            saved.left_behind);
  terms.add(activations, phases, "tables of the stage: rotary angles, attention mask",
            once(parts.tables));

  if (!ends_backward(buffers, at.joined)) {
    add_in_flight(terms, phases, parts, held_at(at, parts, context));
  }

  terms.add(
      working, phases,
      backward ? "received gradient of the running operation" : "input of the operation that runs",
      once(pass.handed));
  terms.add(working, phases, backward ? "gradient of its input" : "its output", once(pass.made));
  terms.add(working, phases, "gradient of the residual stream", once(pass.residual));
  terms.add(working, phases, "temporaries of its kernels", once(pass.temporary));
  terms.add(working, phases,
            planned ? "buffers of messages x bytes of one" : "gradient sent to the stage before",
            message_buffers(parts, context));
  terms.add(logits_and_loss, phases, "logits and what the loss keeps", once(pass.loss_kept));
  terms.add(logits_and_loss, phases, "outputs, gradients and temporaries of the loss",
            once(pass.loss - pass.loss_kept));
  terms.add(recompute_scratch, phases, "recomputed activations", once(pass.recomputed));
  terms.add(gradient_staging, phases, "weight gradients of the running layer",
            once(pass.gradients));
  terms.add(gradients, phases, "elements of finished layers x bytes of a gradient",
            gradients_made(buffers, moment, backward, at.joined, parts, context, states));

  add_gathered(terms, phases,
               gathered_weights_at(buffers, parts, context, moment, backward, at.joined),
               *context.rules);
  const Staging staging = staging_at(buffers, parts, context, moment, backward, at.joined);
  terms.add(gradient_staging, phases,
            "elements that wait for the last micro-batch x bytes of a gradient", staging.unreduced);
  terms.add(gradient_staging, phases, "elements of the reduction buffer x bytes of a gradient",
            staging.buffer);
  terms.add(gradient_staging, phases, "elements of the reduction queue x bytes of a gradient",
            staging.queue);
  terms.add(gradient_staging, phases,
            joins_root(context)
                ? "elements of the head, which waits for the embedding, x bytes of a gradient"
                : "elements of the largest of embedding and head x bytes of a gradient",
            staging.root);
  terms.add(gradient_staging, phases,
            "elements joined in one tensor to be reduced x bytes of a gradient", staging.joined);
  terms.add(gradient_staging, phases,
            "elements of tensors kept whole for a rank's part x bytes of a gradient",
            staging.parts);
  terms.add(gradient_staging, phases,
            "elements whose gradients join earlier micro-batches' x bytes of one", staging.beside);
  terms.add(gradient_staging, phases, "elements of the unit being reduced x bytes of a gradient",
            staging.unit);
  terms.add(gradient_staging, phases, "gradients of the table that the head shares x bytes of one",
            staging.table);
  terms.add(gradient_staging, phases, "elements an all-to-all brings x bytes of a gradient",
            staging.received);
  terms.add(gradient_staging, phases, "elements of their shard x bytes of a sum", staging.sums);
}

}  // namespace

void StageTerms::add(MemoryCategory category, std::uint8_t phases, const char* formula,
                     const Amount& amount) {
  if (amount.bytes() == 0) return;
  terms_.push_back({category, phases, formula, amount});
}

StageTerms stage_terms(const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const StageStates states = stage_states(parts, context);
  StageTerms terms;
  add_states(terms, states, context);
  add_resident_terms(terms, stage_residents(parts, context), rules);
  if (!parts.moments.empty()) {
    const bool apart = gathers_in_use_first(context);
    add_pass(terms, apart ? bit(steady_forward_backward) : kPasses, parts, context, states,
             fullest_moment(parts, context, states));
    if (apart) {
      add_pass(terms, bit(first_forward_backward), parts, context, states,
               fullest_moment(parts, context, states, true));
    }
    add_between_steps(terms, parts, context);
  }
  return terms;
}

}  // namespace shardwise
