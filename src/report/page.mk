# The page is part of the program: html.c takes it in with .incbin, which -MMD does not see.
$(BUILD)/obj/report/html.o: src/report/page.html
