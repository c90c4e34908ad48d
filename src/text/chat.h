// A model's chat template: conversation in, marked text out.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gguf/metadata.h"
#include "text/reasoning.h"
#include "text/template/template.h"
#include "text/tool_calls.h"

namespace strata {

using jinja::RenderedSpan;

// The texts of the vocabulary's special tokens; empty where it has none.
struct SpecialTexts {
  std::string bos, eos, unk, pad;
};
// Empty texts where the metadata lacks them.
SpecialTexts special_texts(const Metadata& metadata);

// The template's variables by name: messages, tools, documents, add_generation_prompt,
// enable_thinking, ... `now` is no variable but the time, as "2026-03-14T15:09:26".
using ChatInputs = boost::json::object;

// What a template does with thinking, found by rendering it.
struct ThinkingSupport {
  ThinkingTags tags;        // empty where the template knows of none
  std::string switched_by;  // the variable that turns thinking on and off; empty: none does
};

// Immutable; safe to use from any thread.
class ChatTemplate {
 public:
  static Result<ChatTemplate> create(std::string_view source, SpecialTexts special);
  // Of the model file. kNotFound, with what to do, where it has no template.
  static Result<ChatTemplate> from_metadata(const Metadata& metadata);

  // Renders `inputs` as the engine does: an empty list of tools counts as none; message parts are
  // joined for a template that takes only text; null content becomes empty where the template
  // would print or trip over it; arguments of calls are objects or strings as the template wants
  // them; tools have a description and parameters, if empty ones, for a template that needs both;
  // developers are systems to a template that does not know them. Fails with the template's own
  // message where it refuses; `refused` becomes the name of an input that cannot be taken.
  Result<std::vector<RenderedSpan>> render(const ChatInputs& inputs,
                                           std::string* refused = nullptr) const;
  // Renders `inputs` as they are, as Python's jinja2 would.
  Result<std::vector<RenderedSpan>> render_verbatim(const ChatInputs& inputs,
                                                    std::string* refused = nullptr) const;

  bool takes_parts() const { return takes_parts_; }
  const ThinkingSupport& thinking() const { return thinking_; }
  bool supports_thinking() const { return !thinking_.tags.close.empty(); }
  // How the model calls tools; kNone where the template says nothing or writes calls in a way that
  // ToolCallParser does not read.
  ToolStyle tool_style() const { return tool_style_; }
  // What one render may cost from here on.
  void set_limits(const jinja::RenderLimits& limits) { limits_ = limits; }
  // Whether a rendered prompt ends inside a thinking block that the template opened.
  bool opens_thinking(const std::vector<RenderedSpan>& prompt) const;

 private:
  ChatTemplate(jinja::Template parsed, SpecialTexts special)
      : template_(std::move(parsed)), special_(std::move(special)) {}

  void probe(std::string_view source);
  // The text of a conversation with the given messages; empty where the template refuses it.
  std::string probe_render(boost::json::array messages, const ChatInputs& more = {}) const;
  bool probe_null_content() const;
  bool probe_whole_tools() const;
  void probe_tools(std::string_view source);
  void adapt_call(boost::json::value& call) const;
  Status adapt_message(boost::json::object& message) const;

  jinja::Template template_;
  jinja::RenderLimits limits_;
  SpecialTexts special_;
  bool takes_parts_ = false;
  bool needs_parts_ = false;         // takes nothing else
  bool takes_null_content_ = false;  // beside tool calls
  bool takes_developer_ = false;
  bool needs_argument_text_ = false;  // arguments as strings, not objects
  bool needs_whole_tools_ = false;    // whatever a client may leave out of a tool
  ToolStyle tool_style_ = ToolStyle::kNone;
  ThinkingSupport thinking_;
};

}  // namespace strata
