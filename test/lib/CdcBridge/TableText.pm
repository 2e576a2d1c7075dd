package CdcBridge::TableText;

# What a source server says of a table, as text in the form of test/unit/table_text.h, read from the server without anything of the
# extension; and what the reader of statements says (test/golden/dump_tables.c).
#
#   my $reader = CdcBridge::TableText->new($source);
#   $reader->add('ALTER TABLE t ADD b INT', 'p', 't');     # runs it, remembers both sides
#   for my $case ($reader->cases) { is($case->{got}, $case->{want}) }
#
# An expression as default counts as one, whatever it is, unless it is one that is translated: a literal or the current time.

use strict;
use warnings;

use CdcBridge::Env qw(new_folder slurp tree);
use DBI;

my %logical = (
	tinytext => 'text', mediumtext => 'text', longtext => 'text', tinyblob => 'blob', mediumblob => 'blob', longblob => 'blob',
	map { $_ => 'geometry' } qw(point linestring polygon multipoint multilinestring multipolygon geomcollection geometrycollection));

sub new
{
	my ($class, $source) = @_;
	return bless { source => $source, dbh => $source->connect, cases => [] }, $class;
}

sub _quote { my ($text) = @_; return "'" . $text =~ s/([\x00-\x1f])/sprintf('<%02x>', ord($1))/ger . "'"; }

# 'it''s', with backslashes, at the beginning of the text: the value and what is behind it.
sub _unquote
{
	my ($text) = @_;
	$text =~ /^'((?:[^'\\]|''|\\.)*)'(.*)$/s or return;
	my ($value, $rest) = ($1, $2);
	$value =~ s/''|\\(.)/defined $1 ? ({ 0 => "\0", n => "\n", r => "\r", t => "\t", Z => "\x1a" }->{$1} \/\/ $1) : "'"/gse;
	return ($value, $rest);
}

sub _labels
{
	my ($type_text) = @_;
	my ($rest) = $type_text =~ /^\w+\((.*)$/s;
	my @labels;
	while ((my ($value, $behind) = _unquote($rest)) == 2)
	{
		push @labels, $value;
		$rest = $behind =~ s/^,//r;
	}
	return @labels;
}

# Expressions that only the server can print stand as a star.
sub _expression
{
	my ($text) = @_;
	my $bare = $text;
	1 while $bare =~ s/^\s*\((.*)\)\s*$/$1/s;
	$bare =~ s/^localtimestamp\(/current_timestamp(/;    # as MariaDB 11.8 prints it
	return $bare if $bare =~ /^(?:current_timestamp|now)(?:\(\d*\))?$/i || $bare eq 'curdate()' || $bare =~ /^-?\(?[\d.]+\)?$/
	  || $bare =~ /^_utf8mb4\\'[^'\\\x80-\xff]*\\'$/ || $bare eq '?';
	return '*';
}

sub _default
{
	my ($self, $column) = @_;
	my ($text, $type) = @$column{qw(column_default type)};
	return '' if !defined $text || $column->{generated};
	my $is_expression;
	my $is_binary = $type =~ /^(?:binary|varbinary|blob)$/;
	if ($self->{source}->is_mariadb)
	{
		return '' if $text eq 'NULL';
		my ($value, $rest) = _unquote($text);
		if (defined $value && $rest eq '') { $text = $is_binary ? '0x' . uc(unpack('H*', $value)) : $value; }
		elsif ($is_binary && $text =~ /^x'([^']*)'$/) { $text = "0x$1"; }    # 11.8
		else { $is_expression = $text !~ /^[-+]?[\d.]+(?:e-?\d+)?$/ && $text !~ /^[bx]'[^']*'$/; }
	}
	else
	{
		$is_expression = $column->{extra} =~ /DEFAULT_GENERATED/;
	}
	# the time zone of the session that gave it is not in the statement
	($text, $is_expression) = ('?', 1) if $type eq 'timestamp' && !$is_expression && $text !~ /^0000/;
	return $is_expression ? ' expression ' . _quote(_expression($text)) : ' default ' . _quote($text);
}

sub _json_columns
{
	my ($self, $create) = @_;
	return $self->{source}->is_mariadb ? map { $_ => 1 } $create =~ /^  `((?:[^`]|``)*)` longtext .*CHECK \(json_valid\(/mg : ();
}

# Text of a table as the server has it now.
sub describe
{
	my ($self, $schema, $table) = @_;
	my $dbh = $self->{dbh};
	my $create = $self->show_create($schema, $table);
	my %json = $self->_json_columns($create);
	my $info = $dbh->selectrow_hashref('select engine as engine, table_comment as comment, table_type as type '
		  . 'from information_schema.tables where table_schema = ? and table_name = ?', {}, $schema, $table);
	my $columns = $dbh->selectall_arrayref('select column_name, column_default, is_nullable, data_type, character_maximum_length, '
		  . 'numeric_precision, numeric_scale, datetime_precision, collation_name, column_type, extra, column_comment, generation_expression '
		  . 'from information_schema.columns where table_schema = ? and table_name = ? order by ordinal_position', {}, $schema, $table);
	my (@columns, %column);
	my $row_end = $info->{type} eq 'SYSTEM VERSIONED' ? 'row_end' : undef;
	for my $row (@$columns)
	{
		my %c;
		@c{qw(name column_default nullable data_type chars precision scale fraction collation type_text extra comment generation)} = @$row;
		$c{type} = $json{ $c{name} } ? 'json' : $logical{ $c{data_type} } // $c{data_type};
		$c{generated} = $c{extra} =~ /(?:VIRTUAL|STORED) GENERATED|PERSISTENT/ || ($c{generation} // '') ne '';
		$c{null} = $c{nullable} eq 'YES';
		$row_end = $c{name} if $row_end && uc($c{generation} // '') eq 'ROW END';
		push @columns, $column{ lc $c{name} } = \%c;
	}
	my @indexes = $self->_indexes($schema, $table, $row_end);
	my ($key) = grep { $self->_can_be_key($_, \%column, $info->{engine}) } @indexes;
	if ($key)
	{
		my $part = 0;
		$column{ lc $_->{name} }{key} = ++$part, $column{ lc $_->{name} }{prefix} = $_->{prefix} for @{ $key->{parts} };
	}
	my $text = join('', (map { $self->_column_line($_) } @columns), (map { _index_line($_) } grep { $_->{name} ne 'PRIMARY' } @indexes),
		$self->_foreign_lines($schema, $create, \%column));
	return $text . "table engine=$info->{engine}" . ($info->{comment} ne '' ? ' comment=' . _quote($info->{comment}) : '')
	  . ($key ? ' key=' . @{ $key->{parts} } : '') . ($key && $key->{name} eq 'PRIMARY' ? ' primary' : '')
	  . (defined $row_end ? ' row_end=' . _quote($row_end) : '') . "\n";
}

sub _column_line
{
	my ($self, $c) = @_;
	my $type = $c->{type};
	my $is_unsigned = ($c->{type_text} =~ / unsigned/ && $type !~ /^(?:enum|set)$/) || $type eq 'year';
	my %size = (
		decimal => [ precision => $c->{precision}, scale => $c->{scale} ], bit => [ length => $c->{precision} ],
		(map { $_ => [ scale => $c->{fraction} ] } qw(time datetime timestamp)),
		(map { $_ => [ length => $c->{chars} ] } qw(char varchar binary varbinary)),
		vector => [ length => $c->{type_text} =~ /\((\d+)\)/ ? $1 : 0 ]);
	my $text = "column $c->{name} $c->{type_text} $type" . ($is_unsigned ? ' unsigned' : '') . ($c->{null} ? '' : ' not-null')
	  . ($c->{extra} =~ /INVISIBLE/ ? ' hidden' : '') . ($c->{type_text} =~ /^tinyint\(1\)/ && !$is_unsigned ? ' boolean' : '')
	  . ($c->{generated} ? ' generated' : '') . ($c->{extra} =~ /auto_increment/ ? ' auto_increment' : '');
	my @size = @{ $size{$type} // [] };
	while (my ($name, $value) = splice(@size, 0, 2)) { $text .= " $name=$value" if $value; }
	my $collation = $type =~ /^(?:binary|varbinary|blob)$/ || ($c->{collation} // '') eq 'binary' ? 63
	  : $type eq 'json' && $self->{source}->is_mariadb ? 46 : 0;
	$text .= " collation=$collation" if $collation;
	my @labels = $type =~ /^(?:enum|set)$/ ? _labels($c->{type_text}) : ();
	$text .= ' labels ' . join(',', map { _quote($_) } @labels) if @labels;
	$text .= " key=$c->{key}" if $c->{key};
	$text .= " prefix=$c->{prefix}" if $c->{prefix};
	$text .= $self->_default($c);
	$text .= ' comment ' . _quote($c->{comment}) if $c->{comment} ne '';
	return "$text\n";
}

# In the server's order.
sub _indexes
{
	my ($self, $schema, $table, $row_end) = @_;
	my @indexes;
	for my $row (@{ $self->{dbh}->selectall_arrayref("show index from `$schema`.`" . $table =~ s/`/``/gr . '`') })
	{
		my ($non_unique, $name, $column, $order, $prefix, $type, $seen) = @$row[ 1, 2, 4, 5, 7, 10, 13 ];
		push @indexes, { name => $name, unique => !$non_unique, type => $type, parts => [],
			hidden => uc($seen) eq ($self->{source}->is_mariadb ? 'YES' : 'NO') }
		  unless @indexes && $indexes[-1]{name} eq $name;
		next if defined $row_end && $indexes[-1]{unique} && @{ $indexes[-1]{parts} } && lc($column // '') eq lc $row_end;
		push @{ $indexes[-1]{parts} }, { name => $column, prefix => $prefix // 0, desc => ($order // '') eq 'D' };
	}
	return @indexes;
}

sub _can_be_key
{
	my ($self, $index, $column, $engine) = @_;
	return $index->{unique} && !($index->{type} eq 'HASH' && $engine ne 'MEMORY')
	  && !grep { !defined $_->{name} || $column->{ lc $_->{name} }{null} || ($_->{prefix} && $index->{name} ne 'PRIMARY') } @{ $index->{parts} };
}

sub _index_line
{
	my ($index) = @_;
	return "index $index->{name} $index->{type}" . ($index->{unique} ? ' unique' : '') . ($index->{hidden} ? ' hidden' : '') . ' ('
	  . join(', ', map { ($_->{desc} ? 'desc ' : '') . ($_->{name} // '<expression>') . ($_->{prefix} ? "($_->{prefix})" : '') } @{ $index->{parts} })
	  . ")\n";
}

# Foreign keys that do something to rows.
sub _foreign_lines
{
	my ($self, $schema, $create, $column) = @_;
	my %action = (CASCADE => 1, 'SET NULL' => 2);
	my $lines = '';
	while ($create =~ /^  CONSTRAINT `([^`]*)` FOREIGN KEY \(([^)]*)\) REFERENCES (?:`([^`]*)`\.)?`([^`]*)` \(([^)]*)\)(.*?),?$/mg)
	{
		my ($name, $columns, $parent_schema, $parent, $parents, $rest) = ($1, $2, $3 // $schema, $4, $5, $6);
		my ($delete) = map { $action{$_} // 0 } $rest =~ /ON DELETE (CASCADE|SET NULL)/;
		my ($update) = map { $action{$_} // 0 } $rest =~ /ON UPDATE (CASCADE|SET NULL)/;
		next unless $delete || $update;
		tr/`//d for $columns, $parents;
		s/,\s*/, /g for $columns, $parents;
		my $inexact = grep { $column->{ lc $_ }{type} =~ /^(?:char|varchar|text|enum|set)$/ } split(/, /, $columns);
		$lines .= "foreign $name ($columns) parent $parent_schema.$parent ($parents) delete=" . ($delete // 0) . ' update=' . ($update // 0)
		  . ($inexact ? ' inexact' : '') . "\n";
	}
	return $lines;
}

sub show_create
{
	my ($self, $schema, $table) = @_;
	my (undef, $text) = $self->{dbh}->selectrow_array("show create table `$schema`.`" . $table =~ s/`/``/gr . '`');
	return $text;
}

# Run a statement on a table that is there, and remember what it made of it. mode => [ name, bits ] of sql_mode; now => the table's name after it.
sub add
{
	my ($self, $statement, $schema, $table, %option) = @_;
	my $dbh = $self->{dbh};
	my ($mode, $bits) = @{ $option{mode} // [ undef, 0 ] };
	my %case = (statement => $statement, bits => $bits, create => $self->show_create($schema, $table), before => $self->describe($schema, $table));
	if ($mode)
	{
		# by number, as it stands in the log: that the number is this mode is asked, too
		$dbh->do("set sql_mode = $bits");
		my ($names) = $dbh->selectrow_array('select @@sql_mode');
		die "sql_mode $bits is $names, not $mode\n" unless ",$names," =~ /,$mode,/;
	}
	my $done = eval { $dbh->do($statement =~ s/\0+$//r); 1 };
	my $error = $@;
	$dbh->do('set sql_mode = default') if $mode;
	return $error =~ s/ at \/.*//sr unless $done;
	$case{after} = $self->describe($schema, $option{now} // $table);
	push @{ $self->{cases} }, \%case;
	return;
}

# Remember a table that is there: its text alone.
sub add_created { my ($self, $statement, $schema, $table) = @_; push @{ $self->{cases} }, { create => $statement, statement => '', bits => 0, before => $self->describe($schema, $table) }; return; }

sub _build
{
	my ($self) = @_;
	my $program = new_folder('dump-tables') . '/dump_tables';
	my $tree = tree();
	my @command = (qw(cc -std=c11 -D_GNU_SOURCE -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all), "-I$tree/src", "-I$tree/test/unit", '-o', $program,
		"$tree/test/golden/dump_tables.c", "$tree/test/unit/table_text.c", glob("$tree/src/ddl/*.c"), map { "$tree/src/core/$_.c" } qw(arena buf status table_def utf8));
	system(@command) == 0 or die "could not compile the reader of statements\n";
	return $program;
}

# Expressions in what the reader says, as above.
sub _fold { my ($text) = @_; return $text =~ s/ expression '(.*?)'(?= comment '|\n)/" expression '" . _expression($1) . "'"/ger; }

# What all statements that were remembered made of their tables, here and there.
sub cases
{
	my ($self) = @_;
	my $program = $self->_build;
	my $dir = new_folder('statements');
	my $dialect = $self->{source}{flavor};
	open(my $in, '>:raw', "$dir/in") or die "$dir/in: $!";
	print $in "$dialect $_->{bits} " . length($_->{create}) . ' ' . length($_->{statement}) . "\n$_->{create}$_->{statement}" for @{ $self->{cases} };
	close($in);
	system("$program <$dir/in >$dir/out 2>$dir/err") == 0 or die "the reader of statements failed:\n" . slurp("$dir/err");
	my @parts = split(/^(?==== )/m, slurp("$dir/out"));
	for my $case (@{ $self->{cases} })
	{
		($case->{created_flags}, $case->{got_before}) = shift(@parts) =~ /^=== created(.*?)\n(.*)$/s;
		$case->{got_before} = _fold($case->{got_before});
		next if $case->{statement} eq '';
		($case->{flags}, $case->{got}) = shift(@parts) =~ /^=== changed(.*?)\n(.*)$/s;
		$case->{got} = _fold($case->{got});
	}
	return @{ $self->{cases} };
}

1;
