#include "types/element_type.h"

namespace bowline {
namespace {

// A type without a name of that kind has an empty one.
std::optional<ElementType> Find(std::string_view ElementTypeInfo::* names, std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const ElementTypeInfo& info : kElementTypes) {
    if (info.*names == name) return info.type;
  }
  return std::nullopt;
}

void Append(std::string& list, std::string_view name) {
  if (!list.empty()) list += ", ";
  list += name;
}

}  // namespace

std::string NameOf(ElementType type) {
  if (!IsElementType(type)) return "type " + std::to_string(static_cast<int>(type));
  return std::string(InfoOf(type).name);
}

std::string NamesOf(bool (*property)(ElementType)) {
  std::string names;
  for (const ElementTypeInfo& info : kElementTypes) {
    if (property(info.type)) Append(names, info.name);
  }
  return names;
}

std::optional<ElementType> ElementTypeFromName(std::string_view name) { return Find(&ElementTypeInfo::name, name); }
std::optional<ElementType> ElementTypeFromMlir(std::string_view name) { return Find(&ElementTypeInfo::mlir, name); }
std::optional<ElementType> ElementTypeFromSafetensors(std::string_view name) {
  return Find(&ElementTypeInfo::safetensors, name);
}
std::optional<ElementType> ElementTypeFromNpy(std::string_view descr) { return Find(&ElementTypeInfo::npy, descr); }

std::optional<ElementType> ElementTypeFromGguf(int number) {
  if (number < 0) return std::nullopt;
  for (const ElementTypeInfo& info : kElementTypes) {
    if (info.gguf == number) return info.type;
  }
  return std::nullopt;
}

std::string SafetensorsTypeNames() {
  std::string names;
  for (const ElementTypeInfo& info : kElementTypes) {
    if (!info.safetensors.empty()) Append(names, info.safetensors);
  }
  return names;
}

}  // namespace bowline
