# The tables of types in docs/types.md and docs/sources/ are what really becomes of such columns, and no type of the map is missing there.
# needs: extensions

use strict;
use warnings;

use CdcBridge::Env qw(slurp tree);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $tree = tree();
my %file = (common => 'docs/types.md', mysql => 'docs/sources/mysql.md', mariadb => 'docs/sources/mariadb.md');

# The rows of tables whose second column has that heading: [ types at the source ], [ types here ], line for messages. A row whose notes
# begin with "11.7 and later" is for newer servers only.
sub rows_of
{
	my ($file, $heading) = @_;
	my ($inside, @rows) = (0);
	for my $line (split(/\n/, slurp("$tree/$file")))
	{
		my @cells = map { s/^\s+|\s+$//gr } split(/\|/, $line);
		$inside = 0 unless $line =~ /^\|/;
		if (@cells > 2 && $cells[1] eq 'source') { $inside = $cells[2] eq $heading; next; }
		next if !$inside || $line =~ /^\|---/;
		next if ($cells[3] // '') =~ /^(\d+)\.(\d+) and later/ && $source->version < $1 * 10000 + $2 * 100;
		push @rows, [ [ $cells[1] =~ /`([^`]+)`/g ], $cells[2], "$file: $cells[1]" ];
	}
	return @rows;
}

# Numbers for the letters of the documents: n, p and s, f.
sub concrete
{
	my ($type) = @_;
	$type =~ s/\((n|f|p,s)\)/{ n => '(12)', f => '(3)', 'p,s' => '(12,4)' }->{$1}/e;
	return $type;
}
sub here { return map { concrete($_) } $_[0] =~ /`([^`]+)`/g; }

# What is left out of the map's rows is told by the code: each name that the client knows, each type that the map has.
my $all_names = join(' ', map { @{ $_->[0] } } map { rows_of($_, 'PostgreSQL') } values %file);
my @known = slurp("$tree/src/mysql/mysql_describe.c") =~ /^\t\{"(\w+)", CDC_TYPE_\w+\},$/mg;
cmp_ok(scalar @known, '>', 35, 'names of types were found in the code');
ok($all_names =~ /\b$_\b/i, "the documents have the type $_") for @known;
my %reached = map { $_ => 1 } slurp("$tree/src/mysql/mysql_describe.c") =~ /^\t\{"\w+", CDC_TYPE_(\w+)\},$/mg;
my ($map) = slurp("$tree/src/schema/schema_type_map.c") =~ /TypeMapEntry type_map\[\] = \{(.*?)^\};/ms;
my @mapped = $map =~ /CDC_TYPE_(\w+)/g;
cmp_ok(scalar @mapped, '>', 25, 'the map was found in the code');
ok($reached{$_}, "a documented type leads to the map's $_") for @mapped;

# Settings that the check of a source looks at
my ($variables) = slurp("$tree/src/source/source_check.c") =~ /variable_names\[\] =\s*\{(.*?)^\};/ms;
my $both = slurp("$tree/$file{mysql}") . slurp("$tree/$file{mariadb}");
for my $name ($variables =~ /"(\w+)"/g)
{
	my $known = $source->query_value("select count(*) from " . ($source->is_mysql ? 'performance_schema.global_variables' : 'information_schema.global_variables') . " where lower(variable_name) = '$name'");
	my $text = $known ? slurp("$tree/$file{ $source->flavor }") : $both;
	ok(index($text, "`$name`") >= 0, "setting $name is documented" . ($known ? ' for ' . $source->flavor : ''));
}

# --- the map
my @rows = map { rows_of($file{$_}, 'PostgreSQL') } 'common', $source->flavor;
cmp_ok(scalar @rows, '>', 25, 'rows of the map were found');
$source->sql('create database shop');
for my $i (0 .. $#rows)
{
	my @types = map { concrete($_) } @{ $rows[$i][0] };
	$source->sql("create table shop.t$i (id int primary key, " . join(', ', map { "c$_ $types[$_]" . ($types[$_] =~ /^timestamp/i ? ' null' : '') } 0 .. $#types) . ')');
}

# A pipeline into that schema makes what the documents say. With an extension they name its type first.
sub check_map
{
	my ($schema, $with_extensions) = @_;
	my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => $schema, server => "server_$schema", target_schema => $schema);
	$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;
	my %found = map { split(/=/, $_, 2) } split(/\n/, $postgres->psql("select relname || '.' || attname || '=' || format_type(atttypid, atttypmod) from pg_attribute a join pg_class c on c.oid = attrelid where relnamespace = '$schema'::regnamespace and attnum > 0"));
	for my $i (0 .. $#rows)
	{
		my ($names, $says, $line) = @{ $rows[$i] };
		my @choices = $says =~ /^`([^`]+)` of `(\w+)`, else `([^`]+)`$/ ? ($1, $3, $2) : $says =~ /^`([^`]+)`$/ ? ($1, $1, undef) : ();
		if (!@choices) { fail("$line: \"$says\" is not understood"); next; }
		my ($extended, $plain, $extension) = @choices;
		next if $with_extensions && (!$extension || !$with_extensions->{$extension});
		my $want = concrete($with_extensions ? $extended : $plain);
		my $wanted = $postgres->psql("create temp table want (c $want); select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'want'::regclass and attnum > 0");
		for my $k (0 .. $#$names)
		{
			is($found{"t$i.c$k"} // 'no table', $wanted, "$names->[$k] becomes $want") or diag($pipeline->table_status("t$i", "concat_ws(e'\\n', last_error, last_error_detail)"));
		}
	}
	$pipeline->stop->drop;
}
check_map('plain');
my %installed;
for my $extension (qw(postgis vector))
{
	SKIP:
	{
		skip("extension $extension is not there", 1) if $postgres->psql("select count(*) from pg_available_extensions where name = '$extension'") eq '0';
		$postgres->psql("set client_min_messages = warning; create extension $extension");
		$installed{$extension} = 1;
		pass("extension $extension is there");
	}
}
check_map('extended', \%installed) if %installed;

# --- targets that somebody else made
my @own = rows_of($file{common}, 'target may be');
cmp_ok(scalar @own, '>', 15, 'rows of types that a target may have were found');
$source->sql('create database own');
$postgres->psql('create schema own');
my (%line, @make);
for my $i (0 .. $#own)
{
	my ($names, $says, $line) = @{ $own[$i] };
	my @targets = here($says);
	for my $k (0 .. $#$names)
	{
		my $type = concrete($names->[$k]);
		my $table = "t${i}_$k";
		$line{$table} = "$names->[$k] into " . join(', ', @targets);
		$source->sql("create table own.$table (id int primary key, " . join(', ', map { "c$_ $type" . ($type =~ /^timestamp/i ? ' null' : '') } 0 .. $#targets) . ')');
		push @make, "create table own.$table (id integer primary key, " . join(', ', map { "c$_ $targets[$_]" } 0 .. $#targets) . ')';
	}
}
$postgres->psql(join(";\n", @make));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'own')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
my %state = map { split(/=/, $_, 2) } split(/\n/, $postgres->psql("select source_table || '=' || state from pg_stat_cdc_table where source_schema = 'own'"));
for my $table (sort keys %line)
{
	is($state{$table}, 'streaming', "a target may have: $line{$table}") or diag($pipeline->table_status($table, "concat_ws(e'\\n', last_error, last_error_detail)"));
}

done_testing();
