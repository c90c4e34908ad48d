// A model file opened for talking to it: its vocabulary and chat template first, its weights when
// they are needed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "run_interrupts.h"
#include "text/chat.h"
#include "text/prompt.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::apps {

struct TalkingModel {
  std::optional<ModelManifest> manifest;  // until the engine takes it
  std::string name;
  std::unique_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<PromptMaker> prompts;
  double load_seconds = 0;

  // `name`: a path, or a cached model's name. `template_file` replaces the file's own template;
  // empty: the file's, if it has one. Prints the file's warnings to stderr.
  static Result<TalkingModel> open(const std::string& name, const std::string& template_file);

  // With a progress bar; kCancelled after Ctrl-C.
  Status load(const EngineOptions& options, Interrupts& interrupts);

  // Every token that ends an answer.
  std::vector<TokenId> stop_tokens() const { return end_tokens(*tokenizer); }

  // REQUIRES for both: it is loaded. For the first also: chat. `think`: for templates that know a
  // switch.
  Result<Prompt> render(const boost::json::array& messages, std::optional<bool> think) const;
  // `control_tokens`: the text may hold some.
  Result<Prompt> plain(std::string_view text, bool control_tokens) const;

  // Of the answers; none without a template.
  ThinkingTags thinking_tags() const { return chat ? chat->thinking().tags : ThinkingTags(); }
};

}  // namespace strata::apps
