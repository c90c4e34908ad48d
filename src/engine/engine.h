// Engine: one model, its plan and the loop that serves every request in one continuous batch. The
// public interface of Strata's core; protocols and programs only translate to it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "device/cpu/cpu_device.h"
#include "gguf/manifest.h"
#include "placement/plan.h"
#include "sample/constraint.h"
#include "sample/sampler.h"
#include "weights/weight_store.h"

namespace strata {

enum class EngineOutput : std::uint8_t {
  kLogits,
  kHidden,  // what the output head would read; nothing is generated
  kScores,  // of pairs of texts, at their first positions; nothing is generated
};

struct EngineOptions {
  int threads = 0;  // 0: one per physical core this process may use
  Isa isa = Isa::kBest;
  bool reference = false;        // f32 activations and cache
  std::int32_t context = 0;      // tokens per sequence; 0: the model's own
  std::int32_t sequences = 1;    // sequences with full context the cache holds
  std::int32_t step_rows = 256;  // token budget of one step; of an encoder at least its context
  std::int32_t logit_rows = 16;  // rows of one step whose logits are computed; at most step_rows
  std::int32_t running = 64;     // sequences computed at a time
  Bytes memory = 0;              // budget; 0: most of what the machine has available
  EngineOutput output = EngineOutput::kLogits;
  // f16 unless said, f32 in the reference mode.
  std::optional<CacheFormat> cache = std::nullopt;
  std::map<std::string, Bytes> reserved = {};  // of the budget, for other work, by owner
  // What else the process holds; empty: what is resident.
  std::function<Bytes()> program = {};
  std::size_t queue = 1024;  // waiting requests, beyond which submit() fails
  std::int64_t queue_tokens = std::int64_t{1} << 40;  // the same of the tokens of their prompts
  bool prefix_cache = true;  // keeps what was computed for prompts that begin alike
  // How much longer than a step of the generating sequences alone a step may take for the sake of
  // prompts; 0: no limit.
  double interactive_slowdown = 2;
  // Called on the engine's thread when all sinks of a step have been; may be empty.
  std::function<void()> after_step = {};

  CacheFormat cache_format() const {
    return cache.value_or(reference ? CacheFormat::kF32 : CacheFormat::kF16);
  }
};

enum class FinishReason {
  kStop,       // a stop token was chosen
  kLength,     // max_tokens were made
  kContext,    // the sequence fills its context
  kCancelled,  // cancel() was called
  kError,      // `status` says why
};
std::string_view to_string(FinishReason reason);

struct Request {
  std::vector<TokenId> tokens;  // at least one, shorter than the context
  SamplingParams sampling;
  std::int32_t max_tokens = -1;  // per choice; -1: until a stop token or the context's end
  std::int32_t choices = 1;      // answers that share the prompt
  std::vector<TokenId> stop_tokens;
  std::vector<Position> logit_positions;  // prompt positions, ascending, reported to on_logits
  std::int32_t priority = 0;              // higher goes first
  std::uint64_t client = 0;               // those of equal priority take turns
  std::string cache_salt;                 // prefixes are shared between equal salts only
  std::shared_ptr<const Constraint> constraint;  // cloned for each choice; may be null
  std::int32_t top_logprobs = -1;  // alternatives reported with each token, 0 to 20; -1: none, nor
                                   // the token's own log-probability
};

struct PromptStart {
  std::int32_t cached = 0;  // prompt tokens that were in the cache
  // The first prompt token that differs from the longest prefix in the cache; -1: none is known to.
  Position first_difference = -1;
  double queued_seconds = 0;  // from submit() on
};

struct ChosenToken {
  TokenId id = 0;
  // Of the chosen token first, then of the most probable ones; empty unless wanted. Valid during
  // the call.
  std::span<const LogProbability> logprobs;
};

// What one request gets to hear. Called on the engine's thread: must return soon and not call back
// into the engine except submit() and cancel().
class Sink {
 public:
  virtual ~Sink() = default;
  // Once, when the first row is about to be computed.
  virtual void on_start(const PromptStart& /*start*/) {}
  // Prompt tokens computed so far, of `total`.
  virtual void on_prompt(std::int32_t /*computed*/, std::int32_t /*total*/) {}
  // Logits after prompt position `position`, or its hidden state; valid during the call.
  virtual void on_logits(Position /*position*/, std::span<const float> /*logits*/) {}
  virtual void on_token(std::int32_t choice, const ChosenToken& token) = 0;
  // Last call for the choice; nothing follows for the request after its last choice's.
  virtual void on_finish(std::int32_t choice, FinishReason reason, const Status& status) = 0;
};

struct EngineStats {
  std::int64_t steps = 0;
  std::int64_t rows = 0;       // tokens computed, recomputation included
  std::int64_t generated = 0;  // tokens chosen
  std::int64_t prompt = 0;     // of the rows, those of prompts
  std::int64_t preemptions = 0;
  std::int64_t prefix_queries = 0;    // prompt tokens looked up in the prefix cache
  std::int64_t prefix_hits = 0;       // prompt tokens found there
  std::int64_t prefix_evictions = 0;  // blocks
  std::int32_t running = 0;           // sequences
  std::int32_t waiting = 0;           // sequences; those of requests not yet looked at included
  // Per cache group. Cached blocks are of no running sequence and count as unused.
  std::vector<std::int32_t> blocks;
  std::vector<std::int32_t> used_blocks;
  std::vector<std::int32_t> cached_blocks;
  double plan_seconds = 0;     // scheduling
  double compute_seconds = 0;  // on the device, as far as the loop's thread ran
  double stall_seconds = 0;    // as far as not: it waited for weights from disk or a processor
  double sample_seconds = 0;   // masks of constraints included
  double send_seconds = 0;     // sinks and after_step
};

// Thread-safe. Destruction cancels what is left and joins the loop.
class Engine {
 public:
  // `progress` may be empty; see LoadProgress.
  static Result<std::unique_ptr<Engine>> load(const std::string& path, const EngineOptions& options,
                                              const LoadProgress& progress);
  // As load, from a manifest that was read already.
  static Result<std::unique_ptr<Engine>> load(ModelManifest manifest, const EngineOptions& options,
                                              const LoadProgress& progress);
  virtual ~Engine() = default;

  // The sink lives until its last on_finish has returned. Errors of the request itself (empty,
  // too long, bad parameters) come back here and the sink is not called; likewise
  // kResourceExhausted where the queue is full.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<Sink> sink) = 0;
  // Ends the request within one step; its choices finish as kCancelled. Unknown ids are ignored.
  virtual void cancel(RequestId id) = 0;
  // As cancel(), of one choice that has tokens; the others go on.
  virtual void cancel(RequestId id, std::int32_t choice) = 0;

  virtual EngineStats stats() const = 0;
  virtual const ModelManifest& manifest() const = 0;
  virtual const PlacementPlan& plan() const = 0;
  virtual const std::string& device_name() const = 0;
  virtual std::int32_t vocabulary() const = 0;
  virtual bool causal() const = 0;  // false: an encoder, whose tokens see those behind them too
  std::int32_t context() const { return plan().context; }
  // Who holds how much of the budget.
  virtual std::map<std::string, Bytes> memory_by_owner() const = 0;
};

}  // namespace strata
