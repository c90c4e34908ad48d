#include "engine/model.h"

#include <algorithm>

#include "graph/hidden_states.h"
#include "models/all.h"
#include "probe/machine.h"
#include "probe/topology.h"

namespace strata {
namespace {

Status check_options(const EngineOptions& options) {
  const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
    return value >= low && value <= high;
  };
  if (!within(options.context, 0, 1 << 28))
    return invalid_argument("a context of {} tokens is not possible", options.context);
  if (!within(options.sequences, 1, 65536))
    return invalid_argument("{} sequences are not possible; 1 to 65536 are", options.sequences);
  if (!within(options.step_rows, 1, 65536))
    return invalid_argument("{} rows per step are not possible; 1 to 65536 are", options.step_rows);
  if (!within(options.logit_rows, 1, 65536))
    return invalid_argument("{} logit rows per step are not possible; 1 to 65536 are",
                            options.logit_rows);
  if (!within(options.running, 1, 65536))
    return invalid_argument("{} running sequences are not possible; 1 to 65536 are",
                            options.running);
  if (options.queue < 1) return invalid_argument("the queue must hold at least 1 request");
  if (!(options.interactive_slowdown == 0 || options.interactive_slowdown >= 1))
    return invalid_argument("a slowdown by {} is not possible; 0 for any, or at least 1",
                            options.interactive_slowdown);
  if (options.reference && options.cache_format() != CacheFormat::kF32)
    return invalid_argument(
        "the reference mode keeps the cache in f32; leave out one of --reference and --cache");
  return {};
}

// The graph whose output the options ask for.
Result<Graph> load_graph(const ModelManifest& manifest, EngineOutput output) {
  STRATA_ASSIGN(Graph graph, build_graph(manifest));
  const bool scores = graph.output_width() == 1;
  if (output == EngineOutput::kScores && !scores)
    return unsupported("{} ({}) has no head that scores pairs of texts", manifest.name(),
                       manifest.architecture());
  if (output != EngineOutput::kScores && scores)
    return unsupported(
        "{} ({}) scores pairs of texts, as `strata embed` prints it; it gives neither answers nor "
        "embeddings",
        manifest.name(), manifest.architecture());
  if (output == EngineOutput::kScores) return graph;
  if (output == EngineOutput::kHidden) return without_output_head(std::move(graph));
  if (graph.causal) return graph;
  return unsupported(
      "{} is an encoder ({}): it answers no prompt; `strata embed` turns texts into its embeddings",
      manifest.name(), manifest.architecture());
}

// Rows of one step. An encoder's takes the longest sequence whole.
StepLimits step_limits(const Graph& graph, const EngineOptions& options) {
  std::int32_t rows = options.step_rows;
  if (!graph.causal)
    rows = std::max(rows, options.context > 0 ? options.context : default_context(graph));
  return {rows, std::min(rows, options.logit_rows)};
}

Status reserve(Model& model, const std::string& owner, Bytes bytes) {
  STRATA_ASSIGN(auto reservation, model.ledger->reserve(owner, bytes));
  model.reservations.push_back(std::move(reservation));
  return {};
}

Status reserve_plan(Model& model) {
  const PlacementPlan& plan = model.plan;
  model.ledger = std::make_unique<MemoryLedger>(plan.budget);
  STRATA_TRY(reserve(model, "program", plan.program));
  for (const auto& [owner, bytes] : plan.reserved) STRATA_TRY(reserve(model, owner, bytes));
  STRATA_TRY(reserve(model, "weights", plan.weights));
  STRATA_TRY(reserve(model, "staging", plan.staging));
  STRATA_TRY(reserve(model, "activations", plan.segment));
  return reserve(model, "cache", plan.cache);
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(ModelManifest manifest, const EngineOptions& options,
                                          const LoadProgress& progress) {
  STRATA_TRY(check_options(options));
  auto model = std::make_unique<Model>();
  model->manifest = std::move(manifest);
  STRATA_ASSIGN(model->graph, load_graph(model->manifest, options.output));
  const HardwareProfile profile = probe_machine();
  const int threads = options.threads > 0 ? options.threads : default_threads(profile);
  const CpuOptions cpu{threads, options.isa, options.reference,
                       worker_processors(profile.nodes, threads)};
  STRATA_ASSIGN(model->device, make_cpu_device(cpu));
  model->device_name = model->device->info().name;
  if (options.threads == 0) model->device_name += ": " + explain_default_threads(profile);

  const CacheFormat cache = options.cache_format();
  // What is resident, since much of what parsing freed still is; the peak may be an earlier
  // model's.
  const Workload workload{options.context, options.sequences, step_limits(model->graph, options),
                          options.program ? options.program() : resident_bytes(), options.reserved};
  DeviceCosts costs{kBlockTokens, {}, 0};
  STRATA_ASSIGN(costs.segment_bytes, model->device->segment_bytes(model->graph, workload.step));
  for (const CacheGroupSpec& group : model->graph.cache_groups)
    costs.cache_block_bytes.push_back(cache_block_bytes(group, cache));
  const Bytes budget = options.memory > 0 ? options.memory : default_memory(profile);
  STRATA_ASSIGN(model->plan, make_plan(model->graph, workload, costs, budget));
  STRATA_TRY(reserve_plan(*model));
  if (progress && !progress(0, model->plan.weights))
    return make_error(StatusCode::kCancelled, "loading was cancelled");
  STRATA_ASSIGN(model->weights, WeightStore::load(model->manifest, model->graph, model->plan,
                                                  *model->device, progress));
  STRATA_ASSIGN(model->executor, Executor::create(model->graph, model->plan, *model->weights, cache,
                                                  *model->device));
  return model;
}

}  // namespace strata
