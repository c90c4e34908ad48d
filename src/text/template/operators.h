// What Python's operators and str() do, with the marks of the text kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/template/ast.h"
#include "text/template/runtime.h"

namespace strata::jinja {

bool truth(const Value& value);
Text to_text(Runtime& runtime, const Value& value);  // str()
Text repr(Runtime& runtime, const Value& value);     // repr()
std::string float_repr(double value);                // shortest digits, as Python writes them

bool equal(Runtime& runtime, const Value& left, const Value& right);
bool less(Runtime& runtime, const Value& left, const Value& right);  // left < right
bool contains(Runtime& runtime, const Value& container, const Value& item);
bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
Value arithmetic(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
Value unary(Runtime& runtime, UnaryOp op, const Value& operand);
Value concat(Runtime& runtime, const std::vector<Value>& items);  // ~: plain text, markup or not

// The items of anything iterable, or the error that it is not.
std::vector<Value> iterate(Runtime& runtime, const Value& value);
std::int64_t length(Runtime& runtime, const Value& value);

// value.name, value[key] and value[start:stop:step].
Value get_attribute(Runtime& runtime, const Value& value, std::string_view name);
Value get_item(Runtime& runtime, const Value& value, const Value& key);
Value get_slice(Runtime& runtime, const Value& value, const Value* start, const Value* stop,
                const Value* step);

Value call(Runtime& runtime, const Value& callee, const Arguments& arguments);

// HTML-escaped, as |escape does; markup stays as it is.
Text escape_markup(Runtime& runtime, const Value& value);

// An argument read as a type, with an error that names the function.
std::int64_t expect_integer(const Value& value, std::string_view function);
const Text& expect_string(const Value& value, std::string_view function);

}  // namespace strata::jinja
