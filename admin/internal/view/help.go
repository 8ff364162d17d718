package view

// help lists the keyboard shortcuts and the signs.
func (s *Site) help(*Request) (*Page, error) {
	data := struct{ Keys, Signs []Link }{
		Keys: []Link{{Text: "/", Href: "search"}, {Text: "g o", Href: "overview"}, {Text: "g w", Href: "workflows"}, {Text: "g c", Href: "cases"},
			{Text: "g i", Href: "items"}, {Text: "g j", Href: "jobs"}, {Text: "g e", Href: "events"}, {Text: "g x", Href: "incidents"}, {Text: "g s", Href: "schedules"}, {Text: "g l", Href: "limits"}, {Text: "g t", Href: "statistics"}, {Text: "g d", Href: "doctor"},
			{Text: "g a", Href: "audit"}, {Text: "j k", Href: "next and previous row"}, {Text: "Enter", Href: "open the row"}, {Text: "x", Href: "tick the row, for the actions below the list"},
			{Text: "[ ]", Href: "one entry back and on in the history of a case"}, {Text: ", .", Href: "to the failure before and the next one"}, {Text: "p", Href: "pause and go on with live changes"},
			{Text: "t", Href: "light or dark"}, {Text: "?", Href: "this page"}, {Text: "Esc", Href: "close"}},
		Signs: []Link{{Text: "initialized", Href: "waits to be started"}, {Text: "started", Href: "is under way"}, {Text: "completed", Href: "has ended well"},
			{Text: "failed", Href: "has ended with a failure"}, {Text: "canceled", Href: "was ended before"}, {Text: "retry", Href: "another attempt follows"},
			{Text: "incident", Href: "waits for a person's decision"}, {Text: "join", Href: "has some of its tokens, and waits for others"}}}
	return &Page{Title: "Help", Nav: "Help", Parts: []Part{{ID: "help", Template: "helppage", Data: data}}}, nil
}
