#include "tools/synthetic_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <tuple>
#include <vector>

#include "formats/registry.h"
#include "gguf/writer.h"
#include "sample/random.h"

namespace strata {
namespace {

using Shape = std::vector<std::uint64_t>;

// Matrices are put together from units of this many elements, or of the largest power of two that
// divides their rows: encoding as many elements as there are weights would take minutes.
constexpr std::int64_t kUnitElements = 256;
constexpr std::uint32_t kPoolUnits = 1024;
// Deviations of weights. A token's own embedding outweighs what attention brings it from the tokens
// before, which all share; else all would go to the same experts.
constexpr float kDeviation = 0.02f;
constexpr float kAttentionOutDeviation = 0.005f;
constexpr float kEmbeddingDeviation = 1.0f;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

constexpr std::int64_t kLeastVocabulary = 512;
constexpr std::int64_t kMostSize = std::int64_t{1} << 24;

// Random words: four for every number of a stream.
class Words {
 public:
  Words(std::uint64_t seed, std::uint32_t stream)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        stream_(stream) {}

  std::uint32_t next() {
    if (at_ == words_.size()) {
      words_ = philox({static_cast<std::uint32_t>(count_), static_cast<std::uint32_t>(count_ >> 32),
                       stream_, 0},
                      key_);
      ++count_;
      at_ = 0;
    }
    return words_[at_++];
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t stream_;
  std::uint64_t count_ = 0;
  std::array<std::uint32_t, 4> words_ = {};
  std::size_t at_ = words_.size();
};

// Near enough to a normal distribution of deviation 1: a sum of four uniform numbers. Exact in f32,
// so that every machine draws the same.
float normal(Words& words) {
  std::int32_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int32_t>(words.next() >> 12);
  return static_cast<float>(sum - (1 << 21)) * (0x1p-20f * 1.7320508f);
}

// The bytes of kPoolUnits random units of `elements` each.
std::vector<std::uint8_t> make_pool(const FormatOps& ops, std::int64_t elements, float deviation,
                                    std::uint64_t seed) {
  Words words(seed, 0);
  std::vector<float> values(static_cast<std::size_t>(elements));
  const auto unit_bytes = static_cast<std::size_t>(row_bytes(ops.info, elements));
  std::vector<std::uint8_t> pool(unit_bytes * kPoolUnits);
  for (std::size_t at = 0; at < pool.size(); at += unit_bytes) {
    std::ranges::generate(values, [&] { return normal(words) * deviation; });
    ops.encode_row(values.data(), elements, pool.data() + at);
  }
  return pool;
}

Status send_units(const std::vector<std::uint8_t>& pool, std::uint64_t units, Words words,
                  const ByteSink& sink) {
  const std::size_t unit_bytes = pool.size() / kPoolUnits;
  std::vector<std::uint8_t> piece;
  for (std::uint64_t i = 0; i < units; ++i) {
    const auto unit =
        pool.begin() + static_cast<std::ptrdiff_t>(words.next() % kPoolUnits * unit_bytes);
    piece.insert(piece.end(), unit, unit + static_cast<std::ptrdiff_t>(unit_bytes));
    if (piece.size() < kPieceBytes && i + 1 < units) continue;
    STRATA_TRY(sink(piece));
    piece.clear();
  }
  return {};
}

// Which format a matrix has.
class Formats {
 public:
  static Result<Formats> parse(std::string_view name, const SyntheticShape& shape) {
    std::string upper(name);
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    Formats formats;
    formats.layers_ = shape.layers;
    formats.eight_experts_ = shape.experts == 8;
    formats.mixed_ = upper == "Q4_K_M";
    const auto id = formats.mixed_ ? FormatId::Q4_K : format_by_name(upper);
    if (!id || find_format(*id) == nullptr)
      return invalid_argument("'{}' is neither a format Strata computes with nor q4_k_m", name);
    formats.base_ = *id;
    return formats;
  }

  FormatId plain() const { return base_; }
  FormatId output() const { return mixed_ ? FormatId::Q6_K : base_; }
  FormatId key() const { return mixed_ && eight_experts_ ? FormatId::Q8_0 : base_; }
  FormatId value(std::int64_t layer) const {
    return mixed_ && eight_experts_ ? FormatId::Q8_0 : down(layer);
  }
  FormatId attention_out() const { return mixed_ && eight_experts_ ? FormatId::Q5_K : base_; }
  // More bits for the first and last eighth of the layers, and for every third between.
  FormatId down(std::int64_t layer) const {
    const std::int64_t eighth = layers_ / 8;
    const bool more = layer < eighth || layer >= 7 * layers_ / 8 || (layer - eighth) % 3 == 2;
    return mixed_ && more ? FormatId::Q6_K : base_;
  }

 private:
  FormatId base_ = FormatId::F32;
  bool mixed_ = false;
  bool eight_experts_ = false;
  std::int64_t layers_ = 0;
};

struct Size {
  const char* option;  // of strata-synthetic
  std::int64_t value;
  std::int64_t least = 1;
  std::int64_t most = kMostSize;
};

Status check(const SyntheticShape& s) {
  const bool experts = s.architecture == "qwen3moe";
  if (!experts && s.architecture != "llama")
    return invalid_argument("the architecture '{}' is neither llama nor qwen3moe", s.architecture);
  std::vector<Size> sizes = {{"--dim", s.dim},
                             {"--layers", s.layers},
                             {"--heads", s.heads},
                             {"--ff", s.feed_forward},
                             {"--kv-heads", s.kv_heads},
                             {"--head-size", s.head_size},
                             {"--vocab", s.vocabulary, kLeastVocabulary, kMostSize},
                             {"--context", s.context}};
  if (experts) {
    sizes.push_back({"--experts", s.experts});
    sizes.push_back({"--used", s.experts_used, 1, s.experts});
    sizes.push_back({"--expert-ff", s.expert_feed_forward});
  }
  for (const Size& size : sizes)
    if (size.value < size.least || size.value > size.most)
      return invalid_argument("{}: {} is not in {}..{}", size.option, size.value, size.least,
                              size.most);
  if (s.heads % s.kv_heads != 0)
    return invalid_argument("--heads: {} is no multiple of --kv-heads, {}", s.heads, s.kv_heads);
  if (s.head_size % 2 != 0) return invalid_argument("--head-size: {} is not even", s.head_size);
  if (!experts && s.experts != 0)
    return invalid_argument("--experts: llama models have no experts here");
  return {};
}

// Rows of matrices are whole blocks.
Status check_rows(const SyntheticShape& s, const FormatInfo& format) {
  const Size rows[] = {
      {"--dim", s.dim},
      {"--heads times --head-size", s.heads * s.head_size},
      s.experts > 0 ? Size{"--expert-ff", s.expert_feed_forward} : Size{"--ff", s.feed_forward}};
  for (const Size& row : rows)
    if (row.value % format.block_elements != 0)
      return invalid_argument("{}: {} elements are no whole {} blocks of {}", row.option, row.value,
                              format.name, format.block_elements);
  return {};
}

// A piece for every word of up to some letters, so that text becomes tokens of several letters.
std::string piece_text(std::int64_t number) {
  if (number == 0) return "\u2581";
  std::string text;
  for (; number > 0; number = (number - 1) / 26)
    text.insert(text.begin(), static_cast<char>('a' + (number - 1) % 26));
  return text;
}

void add_vocabulary(GgufWriter& writer, std::int64_t size) {
  enum Kind : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };
  std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> kinds = {kUnknown, kControl, kControl};
  for (int byte = 0; byte < 256; ++byte) {
    texts.push_back(fmt::format("<0x{:02X}>", byte));
    kinds.push_back(kByte);
  }
  std::vector<float> scores(texts.size(), 0.0f);
  for (std::int64_t number = 0; std::ssize(texts) < size; ++number) {
    texts.push_back(piece_text(number));
    kinds.push_back(kNormal);
    scores.push_back(static_cast<float>(-number));
  }
  writer.add("tokenizer.ggml.model", "llama");
  writer.add_array("tokenizer.ggml.tokens", std::span<const std::string>(texts));
  writer.add_array("tokenizer.ggml.scores", std::span<const float>(scores));
  writer.add_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(kinds));
  writer.add("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  writer.add("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  writer.add("tokenizer.ggml.eos_token_id", std::uint32_t{2});
}

void add_parameters(GgufWriter& writer, const SyntheticShape& s) {
  writer.add("general.architecture", s.architecture);
  writer.add("general.name", "synthetic");
  const auto add = [&](std::string_view key, std::int64_t value) {
    writer.add(fmt::format("{}.{}", s.architecture, key), static_cast<std::uint32_t>(value));
  };
  add("vocab_size", s.vocabulary);
  add("context_length", s.context);
  add("embedding_length", s.dim);
  add("block_count", s.layers);
  add("feed_forward_length", s.feed_forward);
  add("attention.head_count", s.heads);
  add("attention.head_count_kv", s.kv_heads);
  add("attention.key_length", s.head_size);
  add("attention.value_length", s.head_size);
  add("rope.dimension_count", s.head_size);
  writer.add(s.architecture + ".rope.freq_base", 500000.0f);
  writer.add(s.architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  if (s.experts == 0) return;
  add("expert_count", s.experts);
  add("expert_used_count", s.experts_used);
  add("expert_feed_forward_length", s.expert_feed_forward);
}

// Adds the tensors of a model to a writer that must not outlive it.
class TensorAdder {
 public:
  TensorAdder(GgufWriter& writer, const SyntheticShape& shape, std::uint64_t seed,
              const std::function<bool()>& stopped)
      : writer_(writer), shape_(shape), seed_(seed), stopped_(stopped) {}

  void add_all(const Formats& formats) {
    const SyntheticShape& s = shape_;
    matrix("token_embd", formats.plain(), {s.dim, s.vocabulary}, kEmbeddingDeviation);
    for (std::int64_t layer = 0; layer < s.layers; ++layer) add_layer(formats, layer);
    ones("output_norm", s.dim);
    matrix("output", formats.output(), {s.dim, s.vocabulary});
  }

 private:
  void add_layer(const Formats& formats, std::int64_t layer) {
    const SyntheticShape& s = shape_;
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", layer, part); };
    const std::int64_t kv = s.kv_heads * s.head_size;
    ones(name("attn_norm"), s.dim);
    matrix(name("attn_q"), formats.plain(), {s.dim, s.heads * s.head_size});
    matrix(name("attn_k"), formats.key(), {s.dim, kv});
    matrix(name("attn_v"), formats.value(layer), {s.dim, kv});
    matrix(name("attn_output"), formats.attention_out(), {s.heads * s.head_size, s.dim},
           kAttentionOutDeviation);
    ones(name("ffn_norm"), s.dim);
    if (s.experts == 0) {
      matrix(name("ffn_gate"), formats.plain(), {s.dim, s.feed_forward});
      matrix(name("ffn_up"), formats.plain(), {s.dim, s.feed_forward});
      matrix(name("ffn_down"), formats.down(layer), {s.feed_forward, s.dim});
      return;
    }
    ones(name("attn_q_norm"), s.head_size);
    ones(name("attn_k_norm"), s.head_size);
    matrix(name("ffn_gate_inp"), FormatId::F32, {s.dim, s.experts});
    const std::int64_t width = s.expert_feed_forward;
    matrix(name("ffn_gate_exps"), formats.plain(), {s.dim, width, s.experts});
    matrix(name("ffn_up_exps"), formats.plain(), {s.dim, width, s.experts});
    matrix(name("ffn_down_exps"), formats.down(layer), {width, s.dim, s.experts});
  }

  void ones(const std::string& name, std::int64_t elements) {
    writer_.add_tensor(name + ".weight", FormatId::F32, Shape{static_cast<std::uint64_t>(elements)},
                       [elements](const ByteSink& sink) {
                         const std::vector<float> values(static_cast<std::size_t>(elements), 1.0f);
                         return sink({reinterpret_cast<const std::uint8_t*>(values.data()),
                                      values.size() * sizeof(float)});
                       });
  }

  void matrix(const std::string& name, FormatId format, std::initializer_list<std::int64_t> sizes,
              float deviation = kDeviation) {
    const Shape shape(sizes.begin(), sizes.end());
    const std::int64_t unit = std::gcd(*sizes.begin(), kUnitElements);
    std::uint64_t units = 1;
    for (const std::int64_t size : sizes) units *= static_cast<std::uint64_t>(size);
    units /= static_cast<std::uint64_t>(unit);
    const std::uint32_t stream = ++streams_;
    writer_.add_tensor(name + ".weight", format, shape, [=, this](const ByteSink& sink) {
      const std::tuple wanted(format, unit, deviation);
      if (pool_.empty() || wanted != pool_of_) {
        pool_ = make_pool(*find_format(format), unit, deviation, seed_);
        pool_of_ = wanted;
      }
      return send_units(pool_, units, Words(seed_, stream),
                        [&](std::span<const std::uint8_t> piece) -> Status {
                          if (stopped_ && stopped_())
                            return make_error(StatusCode::kCancelled, "stopped");
                          return sink(piece);
                        });
    });
  }

  GgufWriter& writer_;
  const SyntheticShape& shape_;
  const std::uint64_t seed_;
  const std::function<bool()>& stopped_;
  std::uint32_t streams_ = 0;  // stream 0 fills the pools
  // Of the matrix written last, and what it is for.
  std::vector<std::uint8_t> pool_;
  std::tuple<FormatId, std::int64_t, float> pool_of_ = {};
};

}  // namespace

Result<SyntheticShape> synthetic_preset(std::string_view name) {
  SyntheticShape shape;
  if (name == "1b") return shape;
  if (name == "8b") {
    shape.dim = 4096;
    shape.layers = 32;
    shape.feed_forward = 14336;
    shape.vocabulary = 128256;
    return shape;
  }
  if (name == "moe") {
    shape.architecture = "qwen3moe";
    shape.kv_heads = 4;
    shape.head_size = 128;
    shape.feed_forward = 6144;
    shape.experts = 64;
    shape.experts_used = 8;
    shape.expert_feed_forward = 768;
    return shape;
  }
  return invalid_argument("there is no preset '{}'; there are 1b, 8b and moe", name);
}

Status write_synthetic_model(const SyntheticShape& asked, std::string_view format,
                             std::uint64_t seed, const std::string& path,
                             const std::function<bool()>& stopped) {
  SyntheticShape shape = asked;
  if (shape.head_size == 0 && shape.heads > 0) shape.head_size = shape.dim / shape.heads;
  STRATA_TRY(check(shape));
  STRATA_ASSIGN(const Formats formats, Formats::parse(format, shape));
  STRATA_TRY(check_rows(shape, find_format(formats.plain())->info));
  GgufWriter writer;
  add_parameters(writer, shape);
  add_vocabulary(writer, shape.vocabulary);
  TensorAdder tensors(writer, shape, seed, stopped);
  tensors.add_all(formats);
  return writer.write(path);
}

}  // namespace strata
