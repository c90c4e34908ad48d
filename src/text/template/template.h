// A sandboxed Jinja2 engine for chat templates: Python's semantics, no access to anything but
// the given inputs, limits on everything.
// Language: https://jinja.palletsprojects.com/en/stable/templates/ with the environment that
// Hugging Face's chat templates expect (trim_blocks, lstrip_blocks, loop controls, generation
// blocks, its own tojson, raise_exception, strftime_now). include, import, extends and block are
// refused.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/template/limits.h"
#include "text/template/runtime.h"
#include "text/template/strftime.h"

namespace strata::jinja {

// A piece of rendered text. Control tokens may be read only out of scaffolding.
struct RenderedSpan {
  std::string text;
  bool content;  // came out of an input; false: out of the template or the engine
};

struct RenderInputs {
  boost::json::object content;      // messages, tools, ...: variables by name, in this order
  boost::json::object scaffolding;  // bos_token, ...: what the engine itself says
  std::optional<TimePoint> now;     // strftime_now is undefined without it
};

// Immutable, cheap to copy, safe to render from any thread.
class Template {
 public:
  // kInvalidArgument, with the line, for what is no template.
  static Result<Template> parse(std::string_view source, const RenderLimits& limits = {});

  // Neighbouring spans differ in their marks; joined they are the text. Errors: the template's
  // own message, bare, where it called raise_exception; kResourceExhausted beyond a limit; else
  // kInvalidArgument with the line. Where an input cannot be taken, `refused` becomes its name.
  Result<std::vector<RenderedSpan>> render(const RenderInputs& inputs,
                                           const RenderLimits& limits = {},
                                           std::string* refused = nullptr) const;

 private:
  struct Parsed;
  explicit Template(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

std::string join(const std::vector<RenderedSpan>& spans);

}  // namespace strata::jinja
