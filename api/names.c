/* names.c - the rule for names that come from outside. */
#include <skv/ops.h>

#include <string.h>

static bool begins_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

bool skv_name_valid(const char *s, size_t n)
{
	if (n == 0 || n > SKV_MAX_NAME || !begins_name(s[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!begins_name(s[i]) && (s[i] == '\0' || !strchr(".-:=@+,", s[i])))
			return false;
	return true;
}

bool skv_model_name_valid(const char *s, size_t n)
{
	size_t part = 0;

	if (n > SKV_MAX_NAME)
		return false;
	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] != '/')
			continue;
		if (!skv_name_valid(s + part, i - part))
			return false;
		part = i + 1;
	}
	return true;
}
