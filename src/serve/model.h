// A model as the server has it: an engine, its texts, and the thread that brings answers out.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "grammar/token_masks.h"
#include "grammar/token_table.h"
#include "serve/delivery.h"
#include "serve/reserve.h"
#include "text/chat.h"
#include "text/prompt.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::serve {

struct ModelFile {
  std::string name;  // what clients call it
  std::string path;
  Bytes bytes = 0;
  std::int64_t modified_at = 0;  // in seconds since 1970
  std::int32_t context = 0;      // that the model was made for; 0: not known
  // For people and clients; may be empty.
  std::string architecture = {}, parameter_size = {}, quantization = {}, digest = {};
};

// Where a request says nothing.
struct SamplingDefaults {
  SamplingParams params;
  std::vector<std::string> dry_breakers;
};
// Of a file's recommendations, or else of the program.
using FindDefaults = std::function<SamplingDefaults(const Metadata&, std::int32_t vocabulary)>;

// Thread-safe.
class ServedModel {
 public:
  static Result<std::unique_ptr<ServedModel>> load(ModelFile file, EngineOptions options,
                                                   const Reserve& reserve,
                                                   const FindDefaults& defaults,
                                                   const LoadProgress& progress = {});

  const ModelFile& file() const { return file_; }
  Engine& engine() const { return *engine_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatTemplate* chat() const { return chat_ ? &*chat_ : nullptr; }
  const PromptMaker& prompts() const { return *prompts_; }
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  const SamplingDefaults& sampling() const { return sampling_; }
  double load_seconds() const { return load_seconds_; }
  // Its own, without what any server takes.
  Bytes memory() const;
  // The longest text to make tokens of in one piece, in bytes.
  Bytes most_text() const { return most_text_; }

  // Of the vocabulary, for grammars; made when first asked for.
  std::shared_ptr<const TokenTable> tokens() const;

  // Of the grammar that `key` names, made by `make` unless it is among those last used. Null while
  // the grammars of answers under way leave no room for it.
  Result<std::shared_ptr<TokenMasks>> masks(const std::string& key,
                                            const std::function<Result<Grammar>()>& make) const;

  Delivery& delivery() const { return *delivery_; }

 private:
  ServedModel() = default;
  std::string_view visible_bytes(TokenId id) const;
  Bytes table_bytes() const;
  bool make_room() const;

  ModelFile file_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_;
  std::unique_ptr<Delivery> delivery_;  // outlives the engine, whose sinks write to it
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<PromptMaker> prompts_;
  std::vector<TokenId> end_tokens_;
  SamplingDefaults sampling_;
  double load_seconds_ = 0;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const TokenTable> tokens_;
  struct NamedMasks {
    std::string key;
    std::shared_ptr<TokenMasks> masks;
  };
  Bytes grammar_bytes_ = 0;  // with tokens()
  Bytes most_text_ = 0;
  std::shared_ptr<MaskRoom> mask_room_;
  mutable std::list<NamedMasks> masks_;  // last used first
};

}  // namespace strata::serve
