// Builds the syntax tree of a template.
#pragma once

#include <string_view>

#include "text/template/ast.h"
#include "text/template/limits.h"

namespace strata::jinja {

// Throws TemplateError, with the line, for a source that is no template or too deep.
Body parse(std::string_view source, const RenderLimits& limits);

}  // namespace strata::jinja
