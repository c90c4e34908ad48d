#include "tests/model_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/file.h"
#include "formats/registry.h"
#include "gguf/writer.h"
#include "models/all.h"

namespace strata::testing {

std::string test_name(const ::testing::TestParamInfo<const char*>& model) {
  std::string name = model.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

Result<LogitRows> LoadedModel::compute(Position first, std::span<const TokenId> tokens) {
  const auto blocks = static_cast<std::int32_t>(
      ceil_div<std::size_t>(static_cast<std::size_t>(first) + tokens.size(), kBlockTokens));
  std::vector<BlockId> table;
  for (std::int32_t i = 0; i < blocks; ++i) table.push_back(BlockId{i});
  StepPlan step;
  SequenceSlice slice;
  slice.first = first;
  slice.tokens = tokens;
  slice.wants_logits.assign(tokens.size(), 1);
  for (std::size_t g = 0; g < graph.cache_groups.size(); ++g) {
    if (graph.cache_groups[g].spec.state_size > 0) {
      slice.block_tables.push_back(std::span(table).first(1));
      continue;
    }
    if (plan.cache_blocks[g] < blocks)
      return internal_error("group {} has {} blocks, {} needed", g, plan.cache_blocks[g], blocks);
    slice.block_tables.push_back(table);
  }
  step.slices.push_back(slice);
  return executor->run(step);
}

Result<std::unique_ptr<LoadedModel>> load_model(const std::string& path,
                                                const ModelOptions& options) {
  auto model = std::make_unique<LoadedModel>();
  STRATA_ASSIGN(model->manifest, ModelManifest::open(path));
  STRATA_ASSIGN(model->graph, build_graph(model->manifest));
  STRATA_ASSIGN(model->device, make_cpu_device(options.cpu));
  const CacheFormat cache =
      options.cache.value_or(options.cpu.reference ? CacheFormat::kF32 : CacheFormat::kF16);
  DeviceCosts costs{kBlockTokens, {}, 0};
  STRATA_ASSIGN(costs.segment_bytes, model->device->segment_bytes(model->graph, options.step));
  for (const CacheGroupSpec& group : model->graph.cache_groups)
    costs.cache_block_bytes.push_back(cache_block_bytes(group, cache));
  STRATA_ASSIGN(
      model->plan,
      make_plan(model->graph, {options.context, options.sequences, options.step}, costs, 8 * kGiB));
  STRATA_ASSIGN(model->weights,
                WeightStore::load(model->manifest, model->graph, model->plan, *model->device, {}));
  STRATA_ASSIGN(model->executor, Executor::create(model->graph, model->plan, *model->weights, cache,
                                                  *model->device));
  return model;
}

namespace {

Status encode(EditableModel::Tensor& tensor, const FormatOps& to) {
  STRATA_ASSIGN(const FormatOps* from, require_format(tensor.format, tensor.name));
  const auto columns = static_cast<std::int64_t>(tensor.shape.front());
  const std::int64_t from_bytes = row_bytes(from->info, columns);
  const std::int64_t to_bytes = row_bytes(to.info, columns);
  const auto rows = static_cast<std::int64_t>(tensor.bytes.size()) / from_bytes;
  std::vector<float> values(static_cast<std::size_t>(columns));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(rows * to_bytes));
  for (std::int64_t row = 0; row < rows; ++row) {
    from->decode_row(tensor.bytes.data() + row * from_bytes, columns, values.data());
    to.encode_row(values.data(), columns, out.data() + row * to_bytes);
  }
  tensor.bytes = std::move(out);
  tensor.format = to.info.id;
  return {};
}

}  // namespace

Result<EditableModel> EditableModel::read(const std::string& path) {
  EditableModel model;
  STRATA_ASSIGN(model.file, GgufFile::open(path));
  STRATA_ASSIGN(const File source, File::open(path));
  for (const TensorInfo& info : model.file.tensors()) {
    const auto shape = std::span(info.shape).first(info.dimensions);
    model.tensors.push_back({info.name, info.format, {shape.begin(), shape.end()}, {}});
    model.tensors.back().bytes.resize(info.bytes);
    STRATA_TRY(source.read_exactly(info.offset, model.tensors.back().bytes));
  }
  return model;
}

EditableModel::Tensor EditableModel::take(std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  Tensor taken = std::move(*found);
  tensors.erase(found);
  return taken;
}

void EditableModel::set(const std::string& key, std::uint64_t value) {
  changed_keys.insert_or_assign(key, MetadataEntry{ValueType::kUint64, value});
}

Status EditableModel::write(const std::string& path) const {
  GgufWriter writer;
  for (const std::string_view key : file.metadata().keys())
    if (!changed_keys.contains(key)) writer.add(key, *file.metadata().find(key));
  for (const auto& [key, entry] : changed_keys) writer.add(key, entry);
  for (const Tensor& tensor : tensors)
    writer.add_tensor(tensor.name, tensor.format, tensor.shape, tensor.bytes);
  return writer.write(path);
}

Status reencode_model(const std::string& from, FormatId format, const std::string& to) {
  STRATA_ASSIGN(EditableModel model, EditableModel::read(from));
  STRATA_ASSIGN(const FormatOps* ops, require_format(format, "copy"));
  bool encoded = false;
  for (EditableModel::Tensor& tensor : model.tensors) {
    const bool router = tensor.name.find("ffn_gate_inp") != std::string::npos;
    const bool matrix = tensor.shape.size() > 1 && !tensor.name.ends_with(".bias");
    if (!matrix || router || tensor.shape.front() % ops->info.block_elements != 0) continue;
    STRATA_TRY(encode(tensor, *ops));
    encoded = true;
  }
  if (!encoded)
    return unsupported("no matrix of '{}' has rows that {} can encode", from, ops->info.name);
  return model.write(to);
}

namespace {

// Adds tensors of reproducible noise to a file.
class TinyWriter {
 public:
  explicit TinyWriter(const TinyShape& shape) : shape_(shape) { data_.reserve(1024); }

  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const FormatOps& ops = *find_format(shape_.format);
    const auto values = noise(rows * columns, 1.0f / std::sqrt(static_cast<float>(columns)));
    const std::int64_t size = row_bytes(ops.info, columns);
    data_.emplace_back(static_cast<std::size_t>(rows * size));
    for (std::int64_t row = 0; row < rows; ++row)
      ops.encode_row(values.data() + row * columns, columns, data_.back().data() + row * size);
    if (shape_.with_nan && name == "output.weight")  // the first block's f16 scale
      data_.back()[0] = 0xff, data_.back()[1] = 0x7f;
    const std::uint64_t extents[] = {static_cast<std::uint64_t>(columns),
                                     static_cast<std::uint64_t>(rows)};
    writer_.add_tensor(name, shape_.format, extents, data_.back());
  }

  void vector(const std::string& name, std::int64_t elements) {
    const std::vector<float> ones(static_cast<std::size_t>(elements), 1.0f);
    data_.emplace_back(ones.size() * sizeof(float));
    std::memcpy(data_.back().data(), ones.data(), data_.back().size());
    const std::uint64_t extents[] = {static_cast<std::uint64_t>(elements)};
    writer_.add_tensor(name, FormatId::F32, extents, data_.back());
  }

  void convolution(const std::string& name, std::int64_t channels, std::int64_t kernel) {
    const auto taps = noise(channels * kernel, 1.0f);
    data_.emplace_back(taps.size() * sizeof(float));
    std::memcpy(data_.back().data(), taps.data(), data_.back().size());
    const std::uint64_t extents[] = {static_cast<std::uint64_t>(kernel),
                                     static_cast<std::uint64_t>(channels)};
    writer_.add_tensor(name, FormatId::F32, extents, data_.back());
  }

  void token_mixer(const std::string& layer, bool recurrent) {
    const TinyShape& s = shape_;
    if (recurrent) {
      matrix(layer + "shortconv.in_proj.weight", 3 * s.embedding, s.embedding);
      convolution(layer + "shortconv.conv.weight", s.embedding, kKernel);
      matrix(layer + "shortconv.out_proj.weight", s.embedding, s.embedding);
      return;
    }
    const std::int64_t kv = s.embedding / s.heads * s.kv_heads;
    matrix(layer + "attn_q.weight", s.embedding, s.embedding);
    matrix(layer + "attn_k.weight", kv, s.embedding);
    matrix(layer + "attn_v.weight", kv, s.embedding);
    matrix(layer + "attn_output.weight", s.embedding, s.embedding);
    if (!s.hybrid) return;
    vector(layer + "attn_q_norm.weight", s.embedding / s.heads);
    vector(layer + "attn_k_norm.weight", s.embedding / s.heads);
  }

  Status write(const std::string& path) {
    const TinyShape& s = shape_;
    writer_.add("general.architecture", architecture());
    number("block_count", s.layers);
    number("embedding_length", s.embedding);
    number("context_length", s.context);
    number("feed_forward_length", s.feed_forward);
    number("attention.head_count", s.heads);
    std::vector<std::int32_t> kv_heads;
    for (std::int32_t i = 0; i < s.layers; ++i)
      kv_heads.push_back(s.hybrid && i % 2 == 0 ? 0 : s.kv_heads);
    writer_.add_array<std::int32_t>(architecture() + ".attention.head_count_kv", kv_heads);
    writer_.add(architecture() + ".attention.layer_norm_rms_epsilon", 1e-5f);
    if (s.hybrid) number("shortconv.l_cache", kKernel);
    matrix("token_embd.weight", s.vocabulary, s.embedding);
    for (std::int32_t i = 0; i < s.layers; ++i) {
      const std::string layer = fmt::format("blk.{}.", i);
      vector(layer + "attn_norm.weight", s.embedding);
      token_mixer(layer, kv_heads[static_cast<std::size_t>(i)] == 0);
      vector(layer + "ffn_norm.weight", s.embedding);
      matrix(layer + "ffn_gate.weight", s.feed_forward, s.embedding);
      matrix(layer + "ffn_up.weight", s.feed_forward, s.embedding);
      matrix(layer + "ffn_down.weight", s.embedding, s.feed_forward);
    }
    vector(s.hybrid ? "token_embd_norm.weight" : "output_norm.weight", s.embedding);
    matrix("output.weight", s.vocabulary, s.embedding);
    return writer_.write(path);
  }

 private:
  static constexpr std::int32_t kKernel = 3;

  std::string architecture() const { return shape_.hybrid ? "lfm2" : "llama"; }
  void number(const std::string& key, std::int32_t value) {
    writer_.add(architecture() + "." + key, static_cast<std::uint32_t>(value));
  }
  std::vector<float> noise(std::int64_t count, float deviation) {
    std::vector<float> out(static_cast<std::size_t>(count));
    // Uniform with the given deviation; the same numbers everywhere.
    for (float& x : out)
      x = (static_cast<float>(random_()) / 4294967296.0f - 0.5f) * deviation * 3.4641016f;
    return out;
  }

  const TinyShape shape_;
  GgufWriter writer_;
  std::vector<std::vector<std::uint8_t>> data_;
  std::mt19937 random_{1234};
};

}  // namespace

Status write_tiny_model(const std::string& path, const TinyShape& shape) {
  return TinyWriter(shape).write(path);
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "strata-XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) folder_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace strata::testing
