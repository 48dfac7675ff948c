# SPDX-License-Identifier: Apache-2.0
"""Grafana's classic dashboard JSON (schema 39: Grafana 10 and later), built from few words.

A board lays panels into rows of 24 columns. Panels take queries as tables write them (expand.py).
"""

from expand import Wrong, expand
from metrics import SWITCH_STATUS, THREAD_STATES

SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "$datasource"}
GREEN, YELLOW, ORANGE, RED, BLUE, GREY = "green", "yellow", "orange", "red", "blue", "text"

STATE_COLORS = {"UNUSED": "#6e7075", "ALIVE": GREEN, "DEAD": RED, "GONE": "dark-red",
                "MISSING": ORANGE, "DOZING": BLUE, "SLEEP": "super-light-blue"}
STATUS_COLORS = {"absent": "#6e7075", "up": GREEN, "stopped": BLUE, "gone": RED, "refused": ORANGE}


def mapping(words, colors):
    """Numbers as coloured words."""
    return [{"type": "value", "options": {
        str(number): {"text": word, "color": colors[word], "index": index}
        for index, (number, word) in enumerate(words.items())}}]


STATE_MAPPING = mapping(THREAD_STATES, STATE_COLORS)
STATUS_MAPPING = mapping(SWITCH_STATUS, STATUS_COLORS)
LINK_MAPPING = mapping({1: "up", 0: "down", -1: "unknown"},
                       {"up": GREEN, "down": RED, "unknown": "#6e7075"})
YES_MAPPING = mapping({1: "yes", 0: "no", -1: "unknown"},
                      {"yes": GREEN, "no": ORANGE, "unknown": "#6e7075"})


def steps(*pairs):
    """steps(("green", None), ("red", 1))"""
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in pairs]}


PLAIN = steps((GREEN, None))
ANY_IS_BAD = steps((GREEN, None), (RED, 1))


class Query:
    """A query and how its series are called. key: the name under which tests check its values."""

    def __init__(self, key, expr, legend="", is_instant=False, is_table=False):
        self.key, self.expr, self.legend = key, expr, legend
        self.is_instant, self.is_table = is_instant or is_table, is_table

    def target(self, ref, variables, extra):
        target = {
            "datasource": DATASOURCE, "refId": ref, "expr": expand(self.expr, variables),
            "editorMode": "code", "legendFormat": self.legend or "__auto",
            "range": not self.is_instant, "instant": self.is_instant,
            "format": "table" if self.is_table else "time_series",
        }
        target.update(extra)
        return target


class Board:
    """One dashboard. variables: those that it offers, besides datasource."""

    def __init__(self, uid, title, description, variables, time_from="now-1h", annotations=()):
        self.uid, self.title, self.description = uid, title, description
        self.variables, self.time_from, self.annotations = variables, time_from, annotations
        self.panels, self.queries = [], {}
        self.x = self.y = self.row_height = 0

    def row(self, title):
        self._end_line()
        self.panels.append({"type": "row", "id": len(self.panels) + 1, "title": title,
                            "collapsed": False, "panels": [],
                            "gridPos": {"h": 1, "w": 24, "x": 0, "y": self.y}})
        self.y += 1

    def _end_line(self):
        self.y += self.row_height
        self.x = self.row_height = 0

    def panel(self, kind, title, description, queries, width, height, defaults, options,
              overrides=(), transformations=(), target_extra=None):
        if self.x + width > 24:
            self._end_line()
        targets = []
        for number, query in enumerate(queries):
            if self.queries.setdefault(query.key, query.expr) != query.expr:
                raise Wrong(f"{self.uid}: two queries are called {query.key}")
            targets.append(query.target(chr(ord("A") + number), self.variables, target_extra or {}))
        panel = {
            "type": kind, "id": len(self.panels) + 1, "title": title, "description": description,
            "datasource": DATASOURCE,
            "gridPos": {"h": height, "w": width, "x": self.x, "y": self.y},
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
            "options": options, "targets": targets,
        }
        if transformations:
            panel["transformations"] = list(transformations)
        self.panels.append(panel)
        self.x += width
        self.row_height = max(self.row_height, height)

    # Panels of the kinds in use.

    def stat(self, title, description, query, width=3, unit="short", thresholds=PLAIN, mappings=(),
             decimals=None, height=4, color="background", no_value="no data"):
        query.is_instant = True
        self.panel("stat", title, description, [query], width, height, {
            "unit": unit, "color": {"mode": "thresholds"}, "thresholds": thresholds,
            "mappings": list(mappings), "noValue": no_value,
            **({} if decimals is None else {"decimals": decimals}),
        }, {"colorMode": color, "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
            "textMode": "value", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}})

    def graph(self, title, description, queries, width=12, height=9, unit="short", is_stacked=False,
              is_bars=False, log=False, minimum=0, maximum=None, thresholds=None, decimals=None,
              no_value="no data", fill=10):
        custom = {
            "drawStyle": "bars" if is_bars else "line", "lineWidth": 1,
            "fillOpacity": 80 if is_bars else 30 if is_stacked else fill, "showPoints": "never",
            "spanNulls": False, "axisLabel": "", "axisPlacement": "auto",
            "stacking": {"mode": "normal" if is_stacked else "none", "group": "A"},
            "scaleDistribution": {"type": "log", "log": 2 if unit == "bytes" else 10} if log else {"type": "linear"},
            "thresholdsStyle": {"mode": "line+area" if thresholds else "off"},
        }
        if unit == "percentunit" and maximum is None:
            custom["axisSoftMax"] = 0.01  # else the axis of nothing but zeros goes up to 10 000 %
        defaults = {"unit": unit, "color": {"mode": "palette-classic"}, "custom": custom,
                    "thresholds": thresholds or PLAIN, "mappings": [], "noValue": no_value}
        for key, value in (("min", None if log else minimum), ("max", maximum), ("decimals", decimals)):
            if value is not None:
                defaults[key] = value
        self.panel("timeseries", title, description, queries, width, height, defaults, {
            "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True,
                       "calcs": ["max"] if is_bars else ["mean", "max"],
                       "sortBy": "Max", "sortDesc": True},
            "tooltip": {"mode": "multi", "sort": "desc"}})

    def timeline(self, title, description, query, mappings, width=24, height=7, no_value="no data"):
        self.panel("state-timeline", title, description, [query], width, height, {
            "unit": "none", "color": {"mode": "thresholds"}, "thresholds": PLAIN,
            "mappings": list(mappings), "noValue": no_value,
            "custom": {"lineWidth": 0, "fillOpacity": 80, "spanNulls": False},
        }, {"mergeValues": True, "showValue": "auto", "alignValue": "left", "rowHeight": 0.85,
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "single", "sort": "none"}})

    def heatmap(self, title, description, query, width=24, height=9, no_value="no data"):
        query.legend = "{{le}}"
        self.panel("heatmap", title, description, [query], width, height, {
            "unit": "short", "noValue": no_value,
            "custom": {"hideFrom": {"legend": False, "tooltip": False, "viz": False},
                       "scaleDistribution": {"type": "linear"}},
        }, {
            "calculate": False, "cellGap": 1, "cellValues": {"unit": "short"},
            "color": {"mode": "scheme", "scheme": "Turbo", "exponent": 0.5, "fill": "dark-orange",
                      "reverse": False, "steps": 64, "scale": "exponential"},
            "filterValues": {"le": 1e-9}, "rowsFrame": {"layout": "auto"},
            "yAxis": {"axisPlacement": "left", "unit": "s", "reverse": False},
            "exemplars": {"color": "rgba(255,0,255,0.7)"}, "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": True},
        }, target_extra={"format": "heatmap"})

    def table(self, title, description, columns, names, width=24, height=8, sort=None,
              no_value="no data", labels=()):
        """columns: [(Query, heading, field configuration)]; names: {label: heading}; labels left out."""
        overrides, renamed = [], dict(names)
        for number, (query, heading, config) in enumerate(columns):
            query.is_instant = query.is_table = True
            field = "Value" if len(columns) == 1 else "Value #" + chr(ord("A") + number)
            renamed[field] = heading
            properties = [{"id": key, "value": value} for key, value in config.items()]
            if "mappings" in config or "thresholds" in config:
                properties.append({"id": "custom.cellOptions",
                                   "value": {"type": "color-background", "mode": "basic"}})
            overrides.append({"matcher": {"id": "byName", "options": heading},
                              "properties": properties})
        order = {name: index for index, name in enumerate(renamed)}
        transformations = ([{"id": "merge", "options": {}}] if len(columns) > 1 else []) + [
            {"id": "organize", "options": {
                "excludeByName": {name: True for name in ("Time", *labels)},
                "indexByName": order, "renameByName": renamed}}]
        self.panel("table", title, description, [column[0] for column in columns], width, height, {
            "unit": "short", "color": {"mode": "thresholds"}, "thresholds": PLAIN, "mappings": [],
            "noValue": no_value, "custom": {"align": "auto", "filterable": True,
                                            "cellOptions": {"type": "auto"}},
        }, {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"],
                                                               "countRows": False, "fields": ""},
            "sortBy": [{"displayName": sort, "desc": True}] if sort else []},
            overrides, transformations)

    # The whole.

    def _variable(self, name):
        before = [v for v in self.variables[:self.variables.index(name)]]
        source = {"thread": "<thread_state>", "port": "<port_link>"}.get(name, "<switch_up>")
        query = f"label_values({expand(source, before)}, {name})"
        return {
            "name": name, "label": name.capitalize(), "type": "query", "datasource": DATASOURCE,
            "query": {"query": query, "refId": "variable-" + name},
            "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".+", "regex": "",
            "hide": 0, "skipUrlSync": False, "options": [],
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        }

    def json(self):
        self._end_line()
        return {
            "id": None, "uid": self.uid, "title": self.title, "description": self.description,
            "tags": ["pmdpulse"], "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": False,
            "graphTooltip": 1, "timezone": "browser", "refresh": "10s", "weekStart": "",
            "time": {"from": self.time_from, "to": "now"}, "fiscalYearStartMonth": 0,
            "liveNow": False, "timepicker": {},
            "links": [{"type": "dashboards", "title": "pmdpulse", "tags": ["pmdpulse"],
                       "asDropdown": True, "includeVars": True, "keepTime": True, "icon": "external link",
                       "targetBlank": False, "tooltip": "", "url": ""}],
            "annotations": {"list": [{
                "builtIn": 1, "name": "Annotations & Alerts", "type": "dashboard", "enable": True,
                "hide": True, "iconColor": "rgba(0, 211, 255, 1)",
                "datasource": {"type": "grafana", "uid": "-- Grafana --"},
            }, *({
                "name": name, "enable": True, "hide": False, "iconColor": color,
                "datasource": DATASOURCE, "expr": expand(expr, self.variables), "step": "10s",
                "titleFormat": title, "textFormat": text, "tagKeys": tags,
            } for name, color, expr, title, text, tags in self.annotations)]},
            "templating": {"list": [{
                "name": "datasource", "label": "Data source", "type": "datasource",
                "query": "prometheus", "refresh": 1, "regex": "", "multi": False, "includeAll": False,
                "hide": 0, "skipUrlSync": False, "options": [],
            }, *map(self._variable, self.variables)]},
            "panels": self.panels,
        }
