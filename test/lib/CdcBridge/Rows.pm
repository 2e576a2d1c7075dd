package CdcBridge::Rows;

# Are the rows of a source's tables and of their mirrors equal? An oracle of its own: it asks both servers for every row,
# brings both to one canonical text by rules that are written here a second time and differently from the extension
# (SQL and Perl, no binary log), and compares them as multisets, so that a row doubled is found as well as a row lost.
#
# Rules: numbers by value, not by spelling; times without trailing zeros; text, bytes and labels by their bytes (hex);
# JSON by value with exact numbers, whatever the order of keys; geometries by SRID
# and WKB.

use strict;
use warnings;

my $shown = 5;    # differences of one kind that are printed for a table

sub new
{
	my ($class, %option) = @_;
	return bless {%option}, $class;
}

# '' when TABLES are equal (default: all base tables of the schema), else what differs.
sub differences
{
	my ($self, @tables) = @_;
	my %difference = $self->differences_by_table(@tables);
	return join('', map { $difference{$_} } sort keys %difference);
}

# The same as a hash by table. All tables are asked for at once.
sub differences_by_table
{
	my ($self, @tables) = @_;
	@tables = $self->source_tables unless @tables;
	my %type = $self->_target_types(@tables);
	my (%difference, %plan);
	for my $table (@tables)
	{
		my ($plan, $wrong) = $self->_plan($table, $type{$table});
		if ($plan) { $plan{$table} = $plan; }
		else { $difference{$table} = $wrong; }
	}
	my @planned = sort keys %plan;
	my %text = map { $_ => '' } @planned;
	if (@planned)
	{
		# no value begins with an equals sign
		my @copies = map { "\\echo =$_\n\\copy (select " . join(', ', @{ $plan{$_}{target_list} }) . " from \"$self->{target_schema}\".\"$_\") to stdout\n" } @planned;
		my @parts = split(/^=/m, $self->{postgres}->psql(join('', @copies)) . "\n");
		for my $part (@parts)
		{
			my ($table, $rows) = $part =~ /^([^\n]*)\n(.*)\z/s or next;
			$text{$table} = $rows;
		}
	}
	$difference{$_} = $self->_table_difference($_, $plan{$_}, $text{$_}) for @planned;
	return %difference;
}

sub source_tables
{
	my ($self) = @_;
	return map { $_->[0] } $self->{source}->query_rows(
		"select table_name from information_schema.tables where table_schema = '$self->{schema}' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED') order by 1");
}

# How a source type is asked for, by the type's name. COL stands for the quoted column. Text leaves as hex, so that no
# byte of it can be mistaken.
my %SOURCE = (
	(map { $_ => [ 'number', 'COL' ] } qw(tinyint smallint mediumint int bigint decimal year)),
	(map { $_ => [ 'real', 'COL + 0e0' ] } qw(float double)),
	(map { $_ => [ 'text', 'hex(convert(COL using utf8mb4))' ] }
		  qw(char varchar tinytext text mediumtext longtext enum set uuid inet4 inet6)),
	(map { $_ => [ 'text', 'hex(COL)' ] } qw(binary varbinary tinyblob blob mediumblob longblob)),
	(map { $_ => [ 'geometry', 'GEOMETRY' ] }
		  qw(geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection geomcollection)),
	date => [ 'date', 'COL' ],
	datetime => [ 'date', 'COL' ],
	timestamp => [ 'date', 'COL' ],
	time => [ 'time', 'COL' ],
	bit => [ 'bit', 'bin(COL + 0)' ],
	json => [ 'json', 'hex(cast(COL as char character set utf8mb4))' ],
	vector => [ 'vector', 'hex(COL)' ],
);

# How the mirror is asked, by the canonical kind; by type where one kind has several.
my %TARGET = (
	number => 'COL::text',
	real => 'COL::float8::text',
	text => q{encode(convert_to(COL::text, 'UTF8'), 'hex')},
	bytea => q{encode(COL, 'hex')},
	inet => q{encode(convert_to(host(COL), 'UTF8'), 'hex')},
	geometry => 'COL::text',
	date => 'COL::text',
	time => '(extract(epoch from COL) * 1000000)::numeric(40,0)::text',
	bit => 'COL::text',
	bool => 'COL::int::text',
	json => q{encode(convert_to(COL::text, 'UTF8'), 'hex')},
	vector => q{translate(COL::text, '{}[]', '')},
);

# Types of the mirrors' columns: { table => { column => type } }.
sub _target_types
{
	my ($self, @tables) = @_;
	my $list = join(', ', map { "'" . s/'/''/gr . "'" } @tables);
	my %type;
	for my $line (split(/\n/, $self->{postgres}->psql(
		"select relname, attname, typname from pg_attribute a join pg_class c on c.oid = attrelid join pg_type t on t.oid = atttypid "
		  . "join pg_namespace n on n.oid = relnamespace "
		  . "where nspname = '$self->{target_schema}' and relname in ($list) and attnum > 0 and not attisdropped")))
	{
		my ($table, $column, $type) = split(/\|/, $line);
		$type{$table}{$column} = $type;
	}
	return %type;
}

# What a table's columns are asked for on both sides: a plan, or (undef, what is wrong).
sub _plan
{
	my ($self, $table, $types) = @_;
	my $source = $self->{source};
	my $target = "$self->{target_schema}.$table";
	my @columns = $source->query_rows("select column_name, lower(data_type) from information_schema.columns "
		  . "where table_schema = '$self->{schema}' and table_name = '$table' order by ordinal_position");
	return (undef, "$table: no such table at the source\n") unless @columns;
	return (undef, "$table: $target does not exist\n") unless $types;
	my %type = %$types;
	my @missing = grep { !exists $type{$_} } map { $_->[0] } @columns;
	return (undef, "$table: $target lacks the columns @missing\n") if @missing;

	my (@kinds, @source_list, @target_list);
	for (@columns)
	{
		my ($name, $source_type) = @$_;
		my ($kind, $source_expression) = @{ $SOURCE{$source_type} // die "$table.$name: no rule for type $source_type\n" };
		my $target_expression = $TARGET{$kind};
		$kind = 'json' if $type{$name} =~ /^jsonb?$/;    # MariaDB's json is a longtext to it
		$target_expression = $TARGET{ $type{$name} } if $type{$name} =~ /^(bytea|bool|inet)$/;
		# as it lies in the server: MySQL would give latitude first where the SRID says so
		$source_expression = 'concat(st_srid(COL), ":", hex(st_aswkb(COL' . ($source->is_mysql ? ', "axis-order=long-lat"' : '') . ')))' if $kind eq 'geometry';
		(my $in_source = $source_expression) =~ s/COL/`$name`/g;
		(my $in_target = $target_expression) =~ s/COL/"$name"/;
		push @kinds, $kind;
		push @source_list, $in_source;
		push @target_list, $in_target;
	}

	return { names => join(' | ', map { $_->[0] } @columns), kinds => \@kinds, source_list => \@source_list, target_list => \@target_list };
}

# Compare the rows of the source with the text of a COPY from the mirror.
sub _table_difference
{
	my ($self, $table, $plan, $text) = @_;
	my $kinds = $plan->{kinds};
	my %count;    # row text => surplus at the source (negative: in the mirror)
	my $statement = $self->{source}->dbh->prepare('select ' . join(', ', @{ $plan->{source_list} }) . " from `$self->{schema}`.`$table`",
		{ mysql_use_result => 1 });
	$statement->execute;
	while (my $row = $statement->fetchrow_arrayref)
	{
		$count{ _row_text($row, $kinds, 'source') }++;
	}
	for my $line (split(/\n/, $text))
	{
		my @row = map { $_ eq '\\N' ? undef : $_ } split(/\t/, $line, -1);
		$count{ _row_text(\@row, $kinds, 'target') }--;
	}

	my @lost = grep { $count{$_} > 0 } sort keys %count;
	my @extra = grep { $count{$_} < 0 } sort keys %count;
	return '' unless @lost || @extra;
	return "$table ($plan->{names}):\n" . _list('only in the source', @lost) . _list('only in the mirror', @extra);
}

sub _list
{
	my ($title, @rows) = @_;
	return '' unless @rows;
	my $more = @rows > $shown ? sprintf("    ... and %d more\n", @rows - $shown) : '';
	return "  $title:\n" . join('', map { '    ' . substr($_, 0, 400) . "\n" } @rows[ 0 .. ($#rows < $shown ? $#rows : $shown - 1) ]) . $more;
}

my %CANONICAL = (
	number => \&_number,
	real => sub { my $value = sprintf('%.17g', $_[0]); return $value == 0 ? '0' : $value; },
	text => sub { return lc($_[0]); },
	geometry => sub { return $_[1] eq 'source' ? lc($_[0]) : _geometry($_[0]); },
	date => \&_date,
	time => sub { return $_[1] eq 'source' ? _microseconds($_[0]) : $_[0]; },
	bit => sub { my ($bits) = $_[0] =~ /^0*([01]+)$/; return $bits; },
	json => sub { return _json(pack('H*', $_[0])); },
	vector => sub {
		my @values = $_[1] eq 'source' ? unpack('f<*', pack('H*', $_[0])) : unpack('f<*', pack('f<*', map { _within_float($_) } split(/,/, $_[0])));
		return join(',', map { sprintf('%.9g', $_) } @values);
	},
);

sub _row_text
{
	my ($row, $kinds, $side) = @_;
	my @text;
	for my $i (0 .. $#$row)
	{
		my $value = $row->[$i];
		$value = $CANONICAL{ $kinds->[$i] }->($value, $side) if defined $value;
		push @text, $value // 'NULL';
	}
	return join(' | ', @text);
}

# Exact: on digits, never through a floating point number. 1.50 -> 15e-1, 0.00 -> 0, 1e3 -> 1e3.
sub _number
{
	my ($text) = @_;
	my ($sign, $whole, $fraction, $exponent) = $text =~ /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/ or return "not a number: $text";
	$fraction //= '';
	my $scale = ($exponent // 0) - length($fraction);
	my $digits = "$whole$fraction";
	$digits =~ s/^0+//;
	$scale += length($1) if $digits =~ s/(0+)$//;
	return '0' if $digits eq '';
	return ($sign eq '-' ? '-' : '') . $digits . ($scale ? "e$scale" : '');
}

# EWKB in hex digits (PostGIS's or a bytea's) to "SRID:WKB".
sub _geometry
{
	my ($text) = @_;
	my $ewkb = pack('H*', $text =~ s/^\\\\x//r);
	my ($order, $type) = unpack('CV', $ewkb);
	return "not little endian: $text" unless defined $type && $order == 1;
	my $srid = $type & 0x20000000 ? unpack('x5V', $ewkb) : 0;
	substr($ewkb, 1, 8) = pack('V', $type & ~0x20000000) if $srid;
	return "$srid:" . unpack('H*', $ewkb);
}

# The greatest float is written with digits that are a little more than it is; pack would make an infinity of them.
sub _within_float
{
	my ($value) = @_;
	my $greatest = 3.4028234663852886e38;
	return $value > $greatest && $value < 3.40282357e38 ? $greatest : $value < -$greatest && $value > -3.40282357e38 ? -$greatest : $value;
}

sub _date
{
	my ($text) = @_;
	$text =~ s/\+00\b//;
	$text = sprintf('%04d', $1 - 1) . $2 if $text =~ /^(\d+)(.*) BC$/;
	$text =~ s/(\.\d*?)0+$/$1/;
	$text =~ s/\.$//;
	return $text;
}

sub _microseconds
{
	my ($sign, $hours, $minutes, $seconds, $fraction) = $_[0] =~ /^(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?$/ or return "not a time: $_[0]";
	my $value = (($hours * 60 + $minutes) * 60 + $seconds) * 1000000 + substr(($fraction // '') . '000000', 0, 6);
	return $value && $sign ? "-$value" : $value;
}

# JSON text to a canonical text: keys sorted (of equal keys the last counts), numbers exact, strings as UTF-8 bytes.
sub _json
{
	local $_ = $_[0];
	my $text = eval { my $value = _json_value(); die "rest\n" unless /\G\s*\z/gc; $value };
	return defined $text ? $text : "not JSON: $_[0]";
}

sub _json_value
{
	/\G\s+/gc;
	if (/\G\{\s*/gc)
	{
		my %member;
		until (/\G\s*\}/gc)
		{
			my $key = _json_string();
			/\G\s*:/gc or die "colon\n";
			$member{$key} = _json_value();
			/\G\s*(,\s*|(?=\}))/gc or die "object\n";
		}
		return '{' . join(',', map { "\"$_\":$member{$_}" } sort keys %member) . '}';
	}
	if (/\G\[\s*/gc)
	{
		my @item;
		until (/\G\s*\]/gc)
		{
			push @item, _json_value();
			/\G\s*(,\s*|(?=\]))/gc or die "array\n";
		}
		return '[' . join(',', @item) . ']';
	}
	return '"' . _json_string() . '"' if substr($_, pos() // 0, 1) eq '"';
	return $1 if /\G(true|false|null)\b/gc;
	return _number($1) if /\G(-?\d[\d.eE+-]*)/gc;
	die "value\n";
}

my %escape = (b => "\b", f => "\f", n => "\n", r => "\r", t => "\t", '/' => '/', '\\' => '\\', '"' => '"');

sub _json_string
{
	/\G\s*"/gc or die "string\n";
	my $text = '';
	until (/\G"/gc)
	{
		if (/\G([^"\\]+)/gc) { $text .= $1; }
		elsif (/\G\\u(d[89ab]..)\\u(d[c-f]..)/gci)
		{
			my $character = chr(0x10000 + ((hex($1) - 0xd800) << 10) + (hex($2) - 0xdc00));
			utf8::encode($character);
			$text .= $character;
		}
		elsif (/\G\\u([0-9a-f]{4})/gci)
		{
			my $character = chr(hex($1));
			utf8::encode($character);
			$text .= $character;
		}
		elsif (/\G\\(.)/gc) { $text .= $escape{$1} // die "escape\n"; }
		else { die "string end\n"; }
	}
	$text =~ s/(["\\])/\\$1/g;
	return $text;
}

1;
