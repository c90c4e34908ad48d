// The objects behind namespace(), cycler() and joiner().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/template/runtime.h"

namespace strata::jinja {

// The only thing a template can change: {% set name.attribute = value %}.
class Namespace final : public Object {
 public:
  std::string type_name() const override { return "jinja2.utils.Namespace"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  void set(Runtime& runtime, std::string_view name, Value value);

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
};

}  // namespace strata::jinja
