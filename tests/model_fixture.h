// A model loaded below the engine, for tests that drive steps themselves; and re-encoded copies of
// the reference models.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "device/cpu/cpu_device.h"
#include "execute/executor.h"
#include "gguf/manifest.h"
#include "placement/plan.h"
#include "weights/weight_store.h"

namespace strata::testing {

// Models whose logits an independent implementation has computed; reference_path() finds them.
inline constexpr std::array kReferenceModels = {
    "llama",     "llama-rope3",  "llama-headdim", "mixtral", "qwen2",          "qwen2moe",
    "qwen3",     "qwen3moe",     "gemma2",        "gemma3",  "phi3",           "gpt-oss",
    "smollm3",   "granite",      "olmo2",         "glm4moe", "deepseek2-lite", "deepseek2-v3",
    "mamba",     "falcon-mamba", "mamba2",        "lfm2",    "nemotron_h",     "granitehybrid",
    "qwen3next", "rwkv7"};
// The name of a test with such a model as its parameter.
std::string test_name(const ::testing::TestParamInfo<const char*>& model);

struct ModelOptions {
  CpuOptions cpu;
  std::optional<CacheFormat> cache = std::nullopt;  // f16 unless said, f32 in the reference mode
  std::int32_t context = 1024;
  std::int32_t sequences = 1;
  StepLimits step = {256, 256};
};

struct LoadedModel {
  ModelManifest manifest;
  Graph graph;
  std::unique_ptr<Device> device;
  PlacementPlan plan;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<Executor> executor;

  // Computes the rows of one sequence that starts at `first` on the pool's first blocks, logits for
  // all of them.
  Result<LogitRows> compute(Position first, std::span<const TokenId> tokens);
};

// On the heap: the executor refers to the graph.
Result<std::unique_ptr<LoadedModel>> load_model(const std::string& path,
                                                const ModelOptions& options);

// A model's file in memory, to be changed and written again.
struct EditableModel {
  struct Tensor {
    std::string name;
    FormatId format;
    std::vector<std::uint64_t> shape;  // row length first
    std::vector<std::uint8_t> bytes;
  };
  GgufFile file;
  std::map<std::string, MetadataEntry, std::less<>> changed_keys;
  std::vector<Tensor> tensors;

  static Result<EditableModel> read(const std::string& path);
  Tensor take(std::string_view name);  // of a tensor that is there, and removes it
  void set(const std::string& key, std::uint64_t value);
  Status write(const std::string& path) const;
};

// Writes a copy of a model whose matrices are encoded in `format`, or kept where their rows are no
// multiple of its block. Fails when not one matrix could be encoded.
Status reencode_model(const std::string& from, FormatId format, const std::string& to);

// Shape of a llama model with random weights, small enough for any test; or of an lfm2 model, whose
// even layers keep a recurrent state instead of keys and values.
struct TinyShape {
  std::int32_t layers = 2;
  std::int32_t embedding = 64;
  std::int32_t heads = 4;
  std::int32_t kv_heads = 2;
  std::int32_t feed_forward = 96;
  std::int32_t vocabulary = 96;
  std::int32_t context = 256;
  FormatId format = FormatId::Q8_0;
  bool with_nan = false;  // one weight of the output head is not a number
  bool hybrid = false;    // lfm2
};
Status write_tiny_model(const std::string& path, const TinyShape& shape);

// A folder of this test run's own, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace strata::testing
