# Random statements that change tables between random changes of their rows, by several sessions, while the pipelines are stopped and started,
# their workers killed and tables copied anew: with schema_changes => evolve both sides are equal afterwards, rows, columns and key; with lenient
# the rows are, and every value that stood in a column when it was dropped or renamed is still there. The test writes these down while the
# source's table is locked, and the names of such columns never come again.
# cells: mariadb-15 mysql-18
#
# CDC_TEST_ROUNDS: rounds, each settled and compared (3). CDC_SEED: repeats the choices, if not the moments.
# takes: 25 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use IO::Handle ();
use List::Util qw(shuffle);
use Test::More;

my $rounds = $ENV{CDC_TEST_ROUNDS} // 3;
my $seed = $ENV{CDC_SEED} // int(time());
my @tables = qw(t1 t2 t3);
my $rows = 60;      # keys up to here are never deleted: their values can be looked for
my $source = CdcBridge::Source->new(args => ['--innodb-lock-wait-timeout=2']);
my $postgres = CdcBridge::Postgres->new;
my @log;            # what was run, for whoever has to find out why
my @kept;           # values that lenient keeps: { table, column, values => { key => text } }
my $fresh = 0;      # number of the next name where none may come again
diag("seed $seed (CDC_SEED), $rounds rounds (CDC_TEST_ROUNDS)");
srand($seed);

sub pick { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }

# ------------------------------------------------------------------ tables

# Types of new columns. "lenient" ones are of kinds that can be made wider and narrower there.
my @types = ('tinyint', 'smallint', 'int', 'bigint', 'int unsigned', 'decimal(6,2)', 'decimal(10,2)', 'varchar(10)', 'varchar(30)', 'char(10)', 'text', 'date', 'datetime', 'datetime(3)',
	q{enum('a','b','c')}, 'double', 'varbinary(20)', 'bit(8)', 'tinyint(1)', 'json', 'time', 'timestamp null', 'year', q{set('x','y','z')}, 'blob', 'float',
	'varchar(20) character set latin1', 'varchar(40) default (uuid())', 'mediumint unsigned');
my @lenient_types = ('tinyint', 'smallint', 'int', 'bigint', 'decimal(6,2)', 'decimal(10,2)', 'varchar(10)', 'varchar(30)', 'text', 'date', 'datetime', q{enum('a','b','c')});

# Types that a column can get without a value being lost: small numbers, short texts (value()).
my %others = (
	(map { $_ => [qw(tinyint smallint int bigint)] } qw(tinyint smallint int bigint)),
	'int unsigned' => [ 'bigint', 'int', 'smallint unsigned' ],
	(map { $_ => [ 'decimal(6,2)', 'decimal(10,2)', 'decimal(12,4)' ] } 'decimal(6,2)', 'decimal(10,2)'),
	(map { $_ => [ 'varchar(10)', 'varchar(30)', 'varchar(200)' ] } 'varchar(10)', 'varchar(30)', 'varchar(200)'),
	'char(10)' => [ 'char(10)', 'char(20)' ], text => [ 'text', 'mediumtext' ],
	date => ['date'], datetime => ['datetime'], 'datetime(3)' => ['datetime(3)'], double => ['double'],
	q{enum('a','b','c')} => [ q{enum('a','b','c')}, q{enum('a','b','c','d')}, q{enum('c','b','a')} ],
	'varbinary(20)' => [ 'varbinary(20)', 'varbinary(40)' ],
);
# Those that make another kind of it, which is for evolve alone.
my %kinds = (
	(map { $_ => [ 'varchar(30)', 'decimal(10,2)', 'text', 'double' ] } qw(tinyint smallint int bigint)),
	(map { $_ => [ 'varchar(30)', 'int', 'tinyint unsigned' ] } 'decimal(6,2)', 'decimal(10,2)'),
	(map { $_ => [ 'text', 'char(10)', 'varbinary(40)', 'int', 'enum(\'v1\',\'v2\',\'\',\'w\')', 'decimal(6,2)' ] } 'varchar(10)', 'varchar(30)'),
	text => [ 'varchar(200)', 'varchar(3)', 'bigint' ], date => [ 'datetime', 'varchar(30)', 'int' ], datetime => [ 'datetime(3)', 'date', 'varchar(40)', 'time' ],
	'datetime(3)' => [ 'datetime', 'datetime(6)', 'varchar(40)' ], double => [ 'decimal(10,2)', 'int', 'float' ],
	q{enum('a','b','c')} => [ 'varchar(10)', 'int', "enum('c','a')", "enum('x','b','a','c')" ], 'int unsigned' => [ 'varchar(30)', 'tinyint', 'decimal(4,2)' ],
	time => [ 'varchar(30)', 'time(3)' ], timestamp => [ 'datetime', 'varchar(40)' ], year => [ 'int', 'varchar(10)', 'smallint' ], float => [ 'double', 'int' ],
	q{set('x','y','z')} => [ 'varchar(40)', q{set('z','y','x','w')}, q{set('x','y')} ], blob => [ 'varbinary(200)', 'longblob' ], 'mediumint unsigned' => [ 'int', 'mediumint', 'varchar(20)' ],
	'varchar(20)' => [ 'varchar(20) character set latin1', 'varchar(20) character set ascii', 'varchar(20)' ], 'varchar(40)' => [ 'varchar(20)', 'text' ],
);

sub create_tables
{
	my ($schema) = @_;
	$source->sql("create database $schema");
	for my $table (@tables)
	{
		$source->sql("create table $schema.$table (id int not null primary key, k2 int not null default 0, n1 int, s1 varchar(30) default 'x', d1 decimal(10,2) not null default 1.5, s2 varchar(10))",
			"insert into $schema.$table (id, n1, s1, s2) values " . join(', ', map { "($_, $_ mod 90, 's$_', null)" } 1 .. $rows));
	}
	return;
}

# Columns as they are: { name, type, text of the type as information_schema has it, null, key, default: is there one?, made: is it generated? }
sub columns
{
	my ($dbh, $schema, $table) = @_;
	return map { { name => $_->[0], type => lc $_->[1], text => $_->[2], null => $_->[3] eq 'YES', key => $_->[4] eq 'PRI',
		default => defined $_->[5] && $_->[5] ne 'NULL', made => ($_->[6] // '') ne '' } } @{ $dbh->selectall_arrayref('select column_name, data_type, column_type, is_nullable, column_key, column_default, generation_expression '
		  . "from information_schema.columns where table_schema = '$schema' and table_name = '$table' order by ordinal_position") };
}

# A value for a column, as SQL: a small number, a short text, so that every type that the column may get can hold it. Not always where
# all may be lost.
sub value
{
	my ($column, $schema) = @_;
	return 'null' if $column->{null} && chance(0.15);
	my ($type, $n) = ($column->{type}, int(rand(90)));
	return pick(-7, 200, 40000, 3000000000, -129) if $schema eq 'shop' && $type =~ /^(?:small|medium|big)?int$/ && chance(0.05);
	return chance(0.5) ? $n : "$n.25" if $type eq 'decimal' || $type eq 'double' || $type eq 'float';
	return 0 + chance(0.5) if $column->{text} =~ /^tinyint\(1\)/;
	return $n if $type =~ /int$/;
	return 1980 + $n if $type eq 'year';
	return q{'} . pick('x', 'y', 'x,y', '') . q{'} if $type eq 'set';
	return sprintf(q{'%d:%02d:%02d'}, $n * 3, $n % 60, $n % 59) if $type eq 'time';
	return q{'} . pick('a', 'b', 'c') . q{'} if $type eq 'enum';
	return sprintf(q{'20%02d-%02d-%02d'}, $n % 40, 1 + $n % 12, 1 + $n % 28) if $type eq 'date';
	return sprintf(q{'20%02d-%02d-%02d %02d:%02d:%02d%s'}, $n % 40, 1 + $n % 12, 1 + $n % 28, $n % 24, $n % 60, $n % 59, $column->{text} =~ /\(/ ? '.125' : '') if $type eq 'datetime' || $type eq 'timestamp';
	return "json_object('n', $n)" if $type eq 'json';
	return "b'" . sprintf('%b', $n) . "'" if $type eq 'bit';
	return "json_object('n', $n)" if $column->{text} eq 'longtext';
	return pick("'ö$n'", "'č$n'") if $schema eq 'shop' && chance(0.1);
	return pick("'$n'", "'v$n'", "''", "'" . ('w' x ($n % 8)) . "'");
}

# ------------------------------------------------------------------ rows

# One change of some rows of a table, by the columns that it has at the moment.
sub change_table
{
	my ($dbh, $schema, $table) = @_;
	my @columns = columns($dbh, $schema, $table);
	my ($id) = map { $_->{name} } grep { $_->{name} =~ /^(?:id|pk)$/ } @columns or die;
	my @others = grep { $_->{name} !~ /^(?:id|pk|k2)$/ && !$_->{made} } @columns;
	my $key = 1 + int(rand($rows * 2));
	my @some = grep { chance(0.6) || (!$_->{null} && !$_->{default}) } @others;
	my $set = join(', ', map { "`$_->{name}` = " . value($_, $schema) } @some);
	my $what = rand();
	if ($what < 0.5) { $dbh->do("update $schema.$table set $set where `$id` = $key") if @some; }
	elsif ($what < 0.75) { $dbh->do("insert into $schema.$table set `$id` = $key" . ($set ne '' ? ", $set" : '') . ' on duplicate key update k2 = k2'); }
	elsif ($what < 0.85) { $dbh->do("delete from $schema.$table where `$id` = $key") if $key > $rows; }
	elsif ($what < 0.9) { $dbh->do("update $schema.$table set `$id` = $key where `$id` = " . ($rows + 1 + int(rand($rows)))) if $key > $rows; }
	elsif ($what < 0.93) { $dbh->do("replace into $schema.$table set `$id` = $key" . ($set ne '' ? ", $set" : '')) if $key > $rows || $schema eq 'shop'; }
	elsif (@some) { $dbh->do("update $schema.$table set $set where `$id` between $key and $key + 5"); }
	return;
}

# One transaction on random tables. A table that was altered since refuses, and nothing happens.
sub change
{
	my ($dbh) = @_;
	my $schema = pick('shop', 'keep');
	my $both = chance(0.2);
	eval {
		$dbh->begin_work;
		for (1 .. 1 + int(rand(4)))
		{
			my $undone = chance(0.05);
			$dbh->do('savepoint here') if $undone;
			change_table($dbh, $both ? pick('shop', 'keep') : $schema, pick(@tables));
			$dbh->do('rollback to here') if $undone;
		}
		chance(0.1) ? $dbh->rollback : $dbh->commit;
		1;
	} or do { my $error = $@; eval { $dbh->rollback }; die $error if $error =~ /gone away|Lost connection|Can't connect/; };
	select(undef, undef, undef, 0.005);
	return;
}

# ------------------------------------------------------------------ statements

# A definition for a column that is there or comes.
sub definition
{
	my ($type, $not_null) = @_;
	my $text = $type;
	$text .= ' not null' if $not_null;
	return $text if $type =~ /json|text|bit|binary|blob|tinyint\(1\)|date|time|year|set|uuid/ || chance(0.5);
	return $text . ' default ' . ($type =~ /int|decimal|double|float/ ? int(rand(50)) : $type =~ /enum/ ? q{'b'} : q{'def'});
}

sub place { my (@columns) = @_; return pick('', '', ' first', ' after `' . pick(@columns)->{name} . '`'); }

# A clause about a table's columns; what it may touch no other clause of the statement does.
sub clause
{
	my ($schema, $columns, $free) = @_;
	my $lenient = $schema eq 'keep';
	my @open = grep { !$_->{touched} && !$_->{key} && $_->{name} !~ /^(?:id|pk|k2)$/ } @$columns;
	my $column = @open ? pick(@open) : undef;
	my $new_name = sub { return $lenient ? 'c' . ++$fresh : shift @$free; };
	my $known = $column ? $column->{text} =~ s/\((?:\d+)\)(?= unsigned|$)//r : '';
	$known = $column->{text} if $column && $column->{text} =~ /^(?:decimal|varchar|char|varbinary|datetime|enum)/;
	my $what = pick(qw(add add add drop rename rename widen widen kind move default key comment null), $lenient ? () : qw(swap made));
	# that one is not known by its type alone
	return if $column && $column->{made} && $what =~ /^(?:widen|kind|move|comment|null|default|swap)$/;
	$column->{touched} = 1 if $column && $what ne 'add' && $what ne 'made';
	if ($what eq 'add' || !$column)
	{
		my $name = $new_name->() // return;
		my $type = pick($lenient ? @lenient_types : @types);
		return "add column `$name` " . definition($type, $type !~ /date|json|enum|null|year|set|uuid/ && chance(0.4)) . place(grep { !$_->{touched} } @$columns);
	}
	if ($what eq 'drop')
	{
		return if @open < 3;
		return "drop column `$column->{name}`" if $lenient || chance(0.6);
		return "drop column `$column->{name}`, add column `$column->{name}` " . definition(pick(@types));
	}
	if ($what eq 'rename')
	{
		my $name = $new_name->() // return;
		push @$free, $column->{name} unless $lenient;
		return "rename column `$column->{name}` to `$name`" if chance(0.6);
		return if $column->{made};
		return "change column `$column->{name}` `$name` $column->{text}" . (chance(0.3) ? place(grep { !$_->{touched} } @$columns) : '');
	}
	if ($what eq 'swap')
	{
		my @second = grep { !$_->{touched} && !$_->{made} } @open or return;
		my $second = pick(@second);
		$second->{touched} = 1;
		return "rename column `$column->{name}` to `$second->{name}`, rename column `$second->{name}` to `$column->{name}`" if chance(0.6);
		return "change column `$column->{name}` `$second->{name}` $column->{text}, change column `$second->{name}` `$column->{name}` $second->{text}";
	}
	if ($what eq 'made')
	{
		my @numbers = grep { $_->{type} =~ /int$/ && !$_->{touched} } @open or return;
		my $of = pick(@numbers);
		my $name = shift @$free // return;
		$of->{touched} = 1;
		return "add column `$name` bigint generated always as (`$of->{name}` + 1) " . pick('stored', 'virtual') . place(grep { !$_->{touched} } @$columns);
	}
	if ($what eq 'widen' || ($what eq 'kind' && $lenient)) { return "modify column `$column->{name}` " . definition(pick(@{ $others{$known} // return }), !$column->{null}); }
	if ($what eq 'kind') { return "modify column `$column->{name}` " . definition(pick(@{ $kinds{$known} // return }), 0); }
	if ($what eq 'move') { return "modify column `$column->{name}` $column->{text}" . ($column->{null} ? '' : ' not null') . place(grep { !$_->{touched} } @$columns); }
	if ($what eq 'comment') { return "modify column `$column->{name}` $column->{text} comment 'drop column ''" . int(rand(100)) . "'''"; }
	return if $what eq 'null' && $column->{type} =~ /date|timestamp/;    # without strict mode a NULL becomes a zero date, which has no form here
	if ($what eq 'null') { return "modify column `$column->{name}` $column->{text}" . (chance(0.5) ? ' not null' : ''); }
	if ($what eq 'default')
	{
		return "alter column `$column->{name}` drop default" if chance(0.4) || $column->{text} =~ /json|text|date|bit|bin|blob|time|year|set|tinyint\(1\)/;
		return "alter column `$column->{name}` set default " . ($column->{type} =~ /int|decimal|double|float/ ? int(rand(50)) : $column->{type} eq 'enum' ? q{'c'} : q{'set'});
	}
	return $lenient ? () : pick("add index (`$column->{name}`" . ($column->{text} =~ /text|blob/ ? '(5)' : '') . ')', "drop index `$column->{name}`");
}

# A statement by which rows come or go without events.
sub rows_statement
{
	my ($schema, $table, $id) = @_;
	return "truncate table $schema.$table" if chance(0.15);
	return "alter table $schema.$table " . pick("partition by key ($id) partitions 3", "partition by range ($id) (partition p0 values less than (40), partition p1 values less than (90), partition p2 values less than maxvalue)",
		'remove partitioning', 'truncate partition p1', 'drop partition p0', 'coalesce partition 1', 'rebuild partition p1', 'exchange partition p0 with table other.exchanged');
}

# A statement on one of the tables.
sub statement
{
	my ($dbh, $schema, $table) = @_;
	my @columns = columns($dbh, $schema, $table);
	my %used = map { $_->{name} => 1 } @columns;
	my ($id) = grep { /^(?:id|pk)$/ } keys %used;
	if ($schema ne 'keep' && chance(0.12))
	{
		my @key = grep { $_->{key} } @columns;
		return "alter table $schema.$table rename column $id to " . ($id eq 'id' ? 'pk' : 'id') if chance(0.3);
		return "alter table $schema.$table modify column $id " . pick('int', 'bigint') . ' not null' . pick('', ' auto_increment') if chance(0.3);
		return "alter table $schema.$table drop primary key, add primary key (" . (@key > 1 ? $id : pick("$id, k2", "k2, $id")) . ')';
	}
	return "alter table $schema.$table " . pick('convert to character set latin1', 'convert to character set utf8mb4', 'engine = innodb', 'drop column if exists nothing') if $schema ne 'keep' && chance(0.04);
	return rows_statement($schema, $table, $id) if $schema ne 'keep' && chance(0.1);
	my @free = shuffle(grep { !$used{$_} } qw(n1 s1 d1 s2 x1 x2 x3 ö), 'odd name', 'select');
	my @clauses = grep { defined } map { clause($schema, \@columns, \@free) } 1 .. (chance(0.6) ? 1 : 2 + int(rand(3)));
	return @clauses ? "alter table $schema.$table " . join(', ', @clauses) : undef;
}

# Run it. What lenient has to keep is written down while nobody can write to the table. A statement that the source refuses is none.
sub alter
{
	my ($dbh, $schema) = @_;
	my $table = pick(@tables);
	my $statement = statement($dbh, $schema, $table) // return;
	my %values;
	my $done = eval {
		# without strict mode values change in the statement, and no row of that is logged
		$dbh->do('set sql_mode = ' . ($schema eq 'shop' && chance(0.3) ? q{''} : 'default') . ', lock_wait_timeout = 3');
		$dbh->do($_) for $statement =~ /exchange/ ? ('drop table if exists other.exchanged', "create table other.exchanged like $schema.$table", 'alter table other.exchanged remove partitioning',
			"insert into other.exchanged select * from $schema.$table limit 3") : ();
		$dbh->do("lock tables $schema.$table write") if $schema eq 'keep';
		if ($schema eq 'keep')
		{
			for my $column ($statement =~ /(?:drop column|rename column|change column) `([^`]*)`/g)
			{
				$values{$column} = { map { @$_ } @{ $dbh->selectall_arrayref("select id, cast(`$column` as char) from keep.$table where id <= $rows") } };
			}
		}
		$dbh->do($statement);
		1;
	};
	my $error = $@;
	$dbh->do('unlock tables');
	push @log, $done ? $statement : "-- refused: $statement: " . $error =~ s/ at \S+ line.*//sr;
	return unless $done;
	push @kept, map { { table => $table, column => $_, values => $values{$_}, statement => $statement } } keys %values;
	return 1;
}

# ------------------------------------------------------------------ both sides

$source->sql('create database other');
my %pipeline = map {
	my ($name, $schema, $mode) = @$_;
	create_tables($schema);
	$name => CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => $name, schema => $schema, target_schema => $schema, tables => "{$schema.*}",
		server => $name, options => qq({"schema_changes": "$mode", "batch_max_ms": 20, "snapshot_chunk_rows": 15}))->setup->start
} ([ 'evolving', 'shop', 'evolve' ], [ 'keeping', 'keep', 'lenient' ]);
$_->wait_for_state('streaming')->wait_for_tables for values %pipeline;

# Columns, and the key in its order, on both sides.
sub shapes
{
	my (@differences);
	for my $table (@tables)
	{
		my @columns = columns($source->dbh, 'shop', $table);
		my $here = $postgres->psql("select string_agg(attname, ',' order by attname collate \"C\") from pg_attribute where attrelid = 'shop.$table'::regclass and attnum > 0 and not attisdropped");
		my $there = join(',', sort map { $_->{name} } @columns);
		push @differences, "$table: columns $there are $here here" if $here ne $there;
		my $key = join(',', map { $_->[4] } grep { $_->[2] eq 'PRIMARY' } $source->query_rows("show index from shop.$table"));
		my $key_here = $postgres->psql("select string_agg(attname, ',' order by n) from pg_constraint, unnest(conkey) with ordinality as k (attnum, n) join pg_attribute a using (attnum) "
			  . "where conrelid = 'shop.$table'::regclass and attrelid = conrelid and contype = 'p'");
		push @differences, "$table: key $key is $key_here here" if $key ne $key_here;
		my $null = join(',', sort map { $_->{name} } grep { $_->{null} } @columns);
		my $null_here = $postgres->psql("select coalesce(string_agg(attname, ',' order by attname collate \"C\"), '') from pg_attribute where attrelid = 'shop.$table'::regclass and attnum > 0 and not attisdropped and not attnotnull");
		push @differences, "$table: columns $null may be NULL, $null_here here" if $null ne $null_here;
	}
	return join("\n", @differences);
}

# Values that lenient had to keep and that are not there.
sub lost_values
{
	my @lost;
	for my $kept (@kept)
	{
		my %here = map { split(/\|/, $_, 2) } split(/\n/, $postgres->psql(qq(select id || '|' || coalesce("$kept->{column}"::text, '<null>') from keep.$kept->{table} where id <= $rows)));
		my @ids = grep { ($here{$_} // '<no row>') ne ($kept->{values}{$_} // '<null>') } sort { $a <=> $b } keys %{ $kept->{values} };
		push @lost, "$kept->{table}.$kept->{column}: $kept->{statement}: " . join(', ', map { "$_: $kept->{values}{$_} is $here{$_}" } map { $kept->{values}{$_} //= '<null>'; $here{$_} //= '<no row>'; $_ } @ids[ 0 .. ($#ids < 3 ? $#ids : 3) ])
		  if @ids;
	}
	return join("\n", @lost);
}

sub settle
{
	my ($name) = @_;
	my $well = 1;
	for my $pipeline (map { $pipeline{$_} } sort keys %pipeline)
	{
		my $who = $pipeline->name . ", $name";
		$well &= eval { $pipeline->wait_for_state('streaming')->wait_for_catchup->wait_for_tables->wait_for_catchup; 1 } ? 1 : diag($@) && 0;
		$well &= is($pipeline->status('tables_stopped'), '0', "$who: no table is stopped")
		  || diag($postgres->psql("select source_table, last_error, last_error_detail from pg_stat_cdc_table where state = 'stopped'")) && 0;
		my $same = $pipeline->is_same("$who: rows are equal");
		diag(poll_until(sub { return $pipeline->same_rows; }, 5) ? 'they are now' : 'they stay so') unless $same;
		$well &= $same;
	}
	$well &= is(shapes(), '', "evolving, $name: columns and keys are equal");
	$well &= is(lost_values(), '', "keeping, $name: what was dropped or renamed is still there");
	diag("seed $seed, the statements of this round:\n" . join("\n", @log), "\nwhat was done:\n",
		$postgres->psql(q{select concat_ws(' ', source_schema, source_table, result, statement, commands, error) from cdc_schema_history order by change_no desc limit 40})) unless $well;
	@log = ();
	return $well;
}

# What happens to a pipeline in the middle of it.
sub processes { return split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge%' and backend_type !~ 'launcher|manager'})); }
my @accidents = (
	sub { },
	sub { my ($pipeline) = @_; $pipeline->stop; alter($source->dbh, $pipeline->{schema}) for 1 .. 3; $pipeline->start; },
	sub { $postgres->kill9_process(pick(processes()) // return); },
	# in the middle of following
	sub { my ($pipeline) = @_; my $pid = pick(processes()) // return; alter($source->dbh, $pipeline->{schema}) for 1 .. 2; $postgres->kill9_process($pid); },
	sub { my ($pipeline) = @_; alter($source->dbh, $pipeline->{schema}); $postgres->psql("select pg_terminate_backend($_)") for grep { chance(0.5) } processes(); },
	# the shape changes while a table is copied; with lenient what changes meanwhile in a column that goes is not kept (docs/schema-changes.md)
	sub { my $pipeline = $pipeline{evolving}; my $table = pick(@tables); $postgres->psql("select cdc_resync_table('$pipeline->{name}', '$pipeline->{schema}.$table')"); alter($source->dbh, $pipeline->{schema}) for 1 .. 3; },
	# somebody reads the targets for a while, and they cannot be altered
	sub {
		my ($pipeline) = @_;
		open(my $reader, '|-', $postgres->bindir . '/psql', '-qXAt', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres') or die "psql: $!";
		$reader->autoflush;
		local $SIG{PIPE} = 'IGNORE';
		print $reader map { "begin; select count(*) from $pipeline->{schema}.$_;\n" } pick(@tables);
		alter($source->dbh, $pipeline->{schema}) for 1 .. 3;
		# until it is in the way, if the target of what was altered it is
		poll_until(sub { return $postgres->psql("select count(*) from pg_stat_activity where backend_type like 'cdc_bridge%' and query like '%waits to alter%'") > 0; }, 1);
		print $reader "commit;\n";
		close($reader);
	},
);

my ($altered, $round) = (0, 0);
while ($round < $rounds)
{
	$round++;
	$source->{seed} = $seed + $round;
	$source->start_writers(3, sub { my ($dbh, $number) = @_; change($dbh); });
	for my $turn (1 .. 6)
	{
		for my $schema ('shop', 'keep') { $altered += grep { $_ } map { alter($source->dbh, $schema) } 1 .. 1 + int(rand(2)); }
		$accidents[$turn % 2 == 0 ? 1 + int(rand($#accidents)) : 0]->($pipeline{ pick('evolving', 'keeping') });
		# let the writers see each shape
		my $changes = ($source->binlog_position)[1];
		poll_until(sub { return ($source->binlog_position)[1] > $changes + 3000 || ($source->binlog_position)[1] < $changes; }, 5);
	}
	$source->stop_writers;
	last unless settle("round $round");
}
is($round, $rounds, 'all rounds');
cmp_ok($altered, '>', $rounds * 6, 'tables were altered');
diag('statements: ' . $postgres->psql("select string_agg(what, ', ') from (select format('%s %s %s', result, kind, count(*)) as what from cdc_schema_history, unnest(kinds) as kind group by result, kind order by 1) as s")
	  . '; copies: ' . (() = $postgres->log_text =~ /is copied anew because/g));
unlike($postgres->log_text, qr/\b(TRAP|PANIC):|terminated by signal (?!9)/, 'no assertion failed, no crash');
done_testing();
