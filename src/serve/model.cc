#include "serve/model.h"

#include <algorithm>
#include <chrono>

#include "base/memory_ledger.h"
#include "base/printable.h"

namespace strata::serve {
namespace {

constexpr std::size_t kMostGrammars = 16;

Result<std::optional<ChatTemplate>> template_of(const Metadata& metadata) {
  if (!metadata.contains("tokenizer.chat_template")) return std::optional<ChatTemplate>();
  auto made = ChatTemplate::from_metadata(metadata);
  if (!made.ok()) return made.status().with_context("the model's chat template");
  return std::optional(std::move(*made));
}

}  // namespace

Result<std::unique_ptr<ServedModel>> ServedModel::load(ModelFile file, EngineOptions options,
                                                       const Reserve& reserve,
                                                       const FindDefaults& defaults,
                                                       const LoadProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<ServedModel> model(new ServedModel());
  STRATA_ASSIGN(ModelManifest manifest, ModelManifest::open(file.path));
  auto tokenizer = Tokenizer::create(manifest.metadata());
  if (!tokenizer.ok()) return tokenizer.status().with_context(printable(file.path));
  model->tokenizer_ = std::move(*tokenizer);
  STRATA_ASSIGN(model->chat_, template_of(manifest.metadata()));
  if (model->chat_) model->chat_->set_limits(reserve.rendering());
  model->mask_room_ = std::make_shared<MaskRoom>(reserve.grammars());
  model->most_text_ = reserve.tokenized();
  model->grammar_bytes_ = reserve.grammars() + model->table_bytes();
  options.queue_tokens = reserve.queued_tokens();
  options.reserved = {{"requests", reserve.requests()}, {"grammars", model->grammar_bytes_}};
  model->delivery_ = std::make_unique<Delivery>();
  options.after_step = [delivery = model->delivery_.get()] { delivery->after_step(); };
  STRATA_ASSIGN(model->engine_, Engine::load(std::move(manifest), options, progress));
  const Engine& engine = *model->engine_;
  if (!engine.causal())
    return unsupported("{} is an encoder, which gives no answers", printable(file.name));
  if (model->tokenizer_->vocabulary_size() > engine.vocabulary())
    return corrupt("the file names {} tokens but the model computes only {}",
                   model->tokenizer_->vocabulary_size(), engine.vocabulary());
  model->prompts_ =
      std::make_unique<PromptMaker>(*model->tokenizer_, model->chat(), engine.context());
  model->end_tokens_ = strata::end_tokens(*model->tokenizer_);
  model->sampling_ = defaults(engine.manifest().metadata(), model->tokenizer_->vocabulary_size());
  model->file_ = std::move(file);
  model->load_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return model;
}

Bytes ServedModel::memory() const {
  const PlacementPlan& plan = engine_->plan();
  return plan.weights + plan.segment + plan.cache + grammar_bytes_;
}

// The most that tokens() may take.
Bytes ServedModel::table_bytes() const {
  Bytes bytes = 0;
  for (TokenId id = 0; id < tokenizer_->vocabulary_size(); ++id)
    bytes += TokenTable::memory_of(visible_bytes(id).size());
  return bytes;
}

// Tags of calls and of thinking are text, even where they are control tokens.
std::string_view ServedModel::visible_bytes(TokenId id) const {
  if (!tokenizer_->contains(id)) return {};
  const std::string_view bytes = tokenizer_->token_bytes(id);
  if (!bytes.empty() || !chat_ || tokenizer_->is_end_of_generation(id)) return bytes;
  std::vector<std::string_view> tags = tool_tags(chat_->tool_style());
  const ThinkingTags& thinking = chat_->thinking().tags;
  tags.insert(tags.end(), {thinking.open, thinking.close});
  const std::string_view text = tokenizer_->token_text(id);
  return std::ranges::find(tags, text) != tags.end() ? text : bytes;
}

std::shared_ptr<const TokenTable> ServedModel::tokens() const {
  const std::lock_guard lock(mutex_);
  if (tokens_) return tokens_;
  std::vector<std::string> bytes;
  bytes.reserve(static_cast<std::size_t>(engine_->vocabulary()));
  std::vector<TokenId> specials;
  for (TokenId id = 0; id < engine_->vocabulary(); ++id) {
    bytes.emplace_back(visible_bytes(id));
    if (bytes.back().empty()) specials.push_back(id);
  }
  return tokens_ = std::make_shared<const TokenTable>(std::move(bytes), end_tokens_, specials);
}

// Lets go of grammars that no answer uses while there are too many, and says whether that helped.
// REQUIRES: mutex_ is held.
bool ServedModel::make_room() const {
  for (auto it = masks_.end(); it != masks_.begin();) {
    if (masks_.size() < kMostGrammars && !mask_room_->is_full()) return true;
    if ((--it)->masks.use_count() > 1) continue;
    mask_room_->used -= it->key.size();
    it = masks_.erase(it);
  }
  return !mask_room_->is_full();
}

Result<std::shared_ptr<TokenMasks>> ServedModel::masks(
    const std::string& key, const std::function<Result<Grammar>()>& make) const {
  const auto known = [&]() -> std::shared_ptr<TokenMasks> {
    const auto found = std::ranges::find(masks_, key, &NamedMasks::key);
    if (found == masks_.end()) return nullptr;
    masks_.splice(masks_.begin(), masks_, found);
    return found->masks;
  };
  {
    const std::lock_guard lock(mutex_);
    if (auto masks = known()) return masks;
  }
  STRATA_ASSIGN(Grammar grammar, make());
  auto masks = std::make_shared<TokenMasks>(std::move(grammar), tokens(), mask_room_);
  if (masks->bytes() + key.size() > mask_room_->most)
    return resource_exhausted("the grammar takes {}, of {} that there are for grammars",
                              human_bytes(masks->bytes() + key.size()),
                              human_bytes(mask_room_->most));
  const std::lock_guard lock(mutex_);
  if (auto other = known()) return other;
  mask_room_->used += key.size();
  if (!make_room()) {
    mask_room_->used -= key.size();
    return std::shared_ptr<TokenMasks>();
  }
  masks_.push_front({key, masks});
  return masks;
}

}  // namespace strata::serve
